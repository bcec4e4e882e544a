// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "clearhead/attention/config.h"
#include "clearhead/attention/exact.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::attention {

// Keys and values of all sequences in panels for kernels::tile_product, tile by tile; the query heads of a group share
// those of their kv head.
class PackedKeys {
 public:
  // Packs in parallel; of input only key and value are read.
  PackedKeys(const AttentionConfig& config, const AttentionInput& input);

  // One tile of one kv head of one sequence.
  struct Tile {
    size_t first, count;  // keys [first, first + count)
    const float* keys;    // [panels of keys, head_dim, 16]
    const float* values;  // [panels of value_dim, count, 16]
    bool finite;          // no value is NaN or infinite
  };

  size_t num_tiles() const { return num_tiles_; }
  Tile tile(size_t batch, size_t kv_head, size_t index) const;

 private:
  void pack(const AttentionInput& input, size_t batch, size_t kv_head, size_t index);

  size_t num_kv_heads_, head_dim_, value_dim_, key_len_, num_tiles_;
  tensor::Tensor keys_;    // [batch, kv_heads, tiles, 256, head_dim], panels inside a tile
  tensor::Tensor values_;  // [batch, kv_heads, tiles, 256, value_dim up to a multiple of 16], panels inside a tile
  std::vector<uint8_t> finite_;  // [batch, kv_heads, tiles]
};

}  // namespace clearhead::attention
