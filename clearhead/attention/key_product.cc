// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/key_product.h"

#include <vector>

#include "clearhead/kernels/tile.h"

namespace clearhead::attention {
namespace {

using kernels::kPanelWidth;

void multiply_in_float(const AttentionConfig& config, const QueryRows& queries, float factor,
                       const kernels::KeyTile& tile, std::span<float> products, size_t stride) {
  const size_t head_dim = config.head_dim;
  std::vector<float> scaled(queries.count * head_dim);
  for (size_t row = 0; row < queries.count; ++row) {
    for (size_t i = 0; i < head_dim; ++i) scaled[row * head_dim + i] = queries.rows[row * queries.stride + i] * factor;
  }
  kernels::tile_product({.left = scaled.data(),
                         .left_stride = head_dim,
                         .panels = tile.keys,
                         .panel_stride = head_dim * kPanelWidth,
                         .output = products.data(),
                         .output_stride = stride,
                         .rows = queries.count,
                         .depth = head_dim,
                         .num_panels = kernels::panel_count(tile.count)});
}

}  // namespace

void multiply_keys(const AttentionConfig& config, const QueryRows& queries, float factor, const kernels::KeyTile& tile,
                   std::span<float> products, size_t stride) {
  if (config.precision == Precision::single) return multiply_in_float(config, queries, factor, tile, products, stride);
  const size_t pairs = kernels::pair_count(config.head_dim);
  std::vector<kernels::Pair> rounded(queries.count * pairs);
  kernels::round_to_pairs(queries.rows, queries.stride, queries.count, config.head_dim, rounded.data(), pairs);
  kernels::pair_product({.left = rounded.data(),
                         .left_stride = pairs,
                         .panels = tile.key_pairs,
                         .panel_stride = pairs * kPanelWidth,
                         .output = products.data(),
                         .output_stride = stride,
                         .rows = queries.count,
                         .pairs = pairs,
                         .num_panels = kernels::panel_count(tile.count),
                         .factor = factor});
}

}  // namespace clearhead::attention
