// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "clearhead/attention/config.h"
#include "clearhead/attention/exact.h"
#include "clearhead/attention/sequence.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::attention {

// Keys and values of all sequences in panels for kernels::tile_product, tile by tile; the query heads of a group share
// those of their kv head. Tiles stand at keys 0, 256, 512, ... of each sequence.
class PackedKeys {
 public:
  // Packs in parallel; of input only key and value are read.
  PackedKeys(const AttentionConfig& config, const AttentionInput& input, std::span<const Sequence> sequences);

  // One tile of one kv head of one sequence.
  struct Tile {
    size_t first, count;  // keys [first, first + count) of the sequence
    const float* keys;    // [panels of keys, head_dim, 16]
    const float* values;  // [panels of value_dim, count, 16]
    bool finite;          // no value is NaN or infinite
  };

  size_t num_tiles(size_t sequence) const { return places_[sequence].num_tiles; }
  Tile tile(size_t sequence, size_t kv_head, size_t index) const;

 private:
  // Where the tiles of one sequence stand: those of kv head h from tile first_tile + h num_tiles and key
  // first_key + h room on.
  struct Place {
    size_t key_len, num_tiles, first_tile;
    size_t room, first_key;  // keys that there is room for: whole panels
  };
  struct Unit {
    size_t sequence, kv_head, index;
  };

  size_t tile_number(const Unit& unit) const;
  void pack(const AttentionInput& input, const Sequence& sequence, const Unit& unit);

  size_t num_kv_heads_, head_dim_, value_dim_;
  std::vector<Place> places_;
  tensor::Tensor keys_;          // [keys of all, head_dim], panels inside a tile
  tensor::Tensor values_;        // [keys of all, value_dim up to a multiple of 16], panels inside a tile
  std::vector<uint8_t> finite_;  // [tiles of all]
};

}  // namespace clearhead::attention
