// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <initializer_list>
#include <string_view>

#include "clearhead/base/checked.h"
#include "clearhead/base/error.h"
#include "clearhead/tensor/shape.h"

namespace clearhead::attention {

// Throws: Error (usage) unless found elements are those of the shape.
inline void check_size(std::string_view name, const tensor::Shape& shape, size_t found) {
  if (shape.checked_elements() == found) return;
  base::refuse("attention", fmt::format("{} of shape {}", name, shape.text()), fmt::format("{} elements", found));
}

// Start of row (batch, head, query) in [batch, heads, query, key]. 64 bits: 32 heads of 8,192 tokens are past 2^31.
struct ScoreIndex {
  size_t num_heads, query_len, key_len;

  size_t row(size_t batch, size_t head, size_t query) const { return (batch * num_heads + head) * query_len + query; }
  size_t start(size_t batch, size_t head, size_t query) const { return row(batch, head, query) * key_len; }
};

}  // namespace clearhead::attention
