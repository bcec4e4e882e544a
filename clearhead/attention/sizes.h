// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string_view>

#include "clearhead/attention/config.h"
#include "clearhead/base/checked.h"
#include "clearhead/base/error.h"
#include "clearhead/tensor/shape.h"

namespace clearhead::attention {

// Throws: Error (usage) unless found elements are those of the shape.
inline void check_size(std::string_view name, const tensor::Shape& shape, size_t found) {
  if (shape.checked_elements() == found) return;
  base::refuse("attention", fmt::format("{} of shape {}", name, shape.text()), fmt::format("{} elements", found));
}

// Number of keys, from the first on, that the causal rule leaves to a query: at most key_len.
inline size_t causal_end(const AttentionConfig& config, size_t query, size_t key_len) {
  switch (config.causal) {
    case Causal::none: return key_len;
    case Causal::top_left: return std::min(query + 1, key_len);
    case Causal::offset: break;
  }
  return config.key_offset >= key_len ? key_len : std::min(query + 1 + config.key_offset, key_len);
}

// Start of row (batch, head, query) in [batch, heads, query, key]. 64 bits: 32 heads of 8,192 tokens are past 2^31.
struct ScoreIndex {
  size_t num_heads, query_len, key_len;

  size_t row(size_t batch, size_t head, size_t query) const { return (batch * num_heads + head) * query_len + query; }
  size_t start(size_t batch, size_t head, size_t query) const { return row(batch, head, query) * key_len; }
};

}  // namespace clearhead::attention
