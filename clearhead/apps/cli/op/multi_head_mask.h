// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>

#include "clearhead/apps/cli/op/tensors.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::apps {

// What the masks of the module say, each of type BOOL (true = must not attend) or floating (added to the scores).
struct ModuleMasks {
  std::optional<tensor::TensorView> attention;  // [query, key] or [batch * heads, query, key]
  std::optional<tensor::TensorView> padding;    // [batch, key], or [key] without a batch
  bool causal = false;                          // query i sees no key behind i
};

struct ModuleSizes {
  size_t batch, num_heads, query_len, key_len;
  size_t appended = 0;  // keys behind the given ones, which every query sees
};

// All masks added up, -infinity = may not be seen; an axis on which nothing differs has size 1.
// Shapes: result [batch or 1, num_heads or 1, query_len, key_len + appended], F32 or F64 as real says.
// Throws: Error (usage) for a wrong type or shape.
tensor::Tensor combine_masks(const Inputs& inputs, const ModuleMasks& masks, const ModuleSizes& sizes,
                             tensor::DType real);

}  // namespace clearhead::apps
