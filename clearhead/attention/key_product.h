// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "clearhead/attention/config.h"
#include "clearhead/kernels/attention_tile.h"

namespace clearhead::attention {

// Some queries of one head.
struct QueryRows {
  const float* rows;  // [count, head_dim], stride floats from row to row
  size_t stride, count;
};

// products = (queries times factor) times the keys of a tile, as scores are computed: with one rounding of each query
// in float, or, in bfloat16, queries rounded and the factor applied at the end.
// Shapes: products [count, keys of the tile up to whole panels], stride floats from row to row.
void multiply_keys(const AttentionConfig& config, const QueryRows& queries, float factor, const kernels::KeyTile& tile,
                   std::span<float> products, size_t stride);

}  // namespace clearhead::attention
