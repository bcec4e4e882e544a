// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "clearhead/attention/config.h"
#include "clearhead/attention/exact.h"
#include "clearhead/attention/float_room.h"
#include "clearhead/attention/merge.h"
#include "clearhead/attention/sequence.h"
#include "clearhead/kernels/attention_tile.h"
#include "clearhead/kernels/tile.h"

namespace clearhead::attention {

// Keys that a sequence of key_len keys needs room for: whole panels.
constexpr size_t key_room(size_t key_len) { return kernels::panel_count(key_len) * kernels::kPanelWidth; }

// value_dim up to whole panels.
inline size_t padded_value_dim(const AttentionConfig& config) {
  return kernels::panel_count(config.value_dim) * kernels::kPanelWidth;
}

// Floats that a packed key and a packed value take, or pairs, of the same size, in bfloat16. A value is half a pair
// wide there, so that keys are counted in pairs.
inline size_t packed_key_width(const AttentionConfig& config) {
  return config.precision == Precision::single ? config.head_dim : kernels::pair_count(config.head_dim);
}
inline size_t packed_value_width(const AttentionConfig& config) {
  return config.precision == Precision::single ? padded_value_dim(config) : padded_value_dim(config) / 2;
}

constexpr size_t tile_count(size_t key_len) { return (key_len + kKeyTile - 1) / kKeyTile; }

// Where the packed keys and values of one kv head of a sequence begin; pairs stand there in bfloat16.
struct PackedPlace {
  float* keys;    // [key_room, packed_key_width]
  float* values;  // [key_room, packed_value_width]
};

// A tile whose keys and values stand there.
kernels::KeyTile tile_at(const AttentionConfig& config, size_t first, size_t count, const PackedPlace& place);

// Packs keys in panels as multiply_keys reads them. Shapes: rows [count, head_dim], stride floats from row to row; keys
// [key_room(count), packed_key_width].
void pack_keys(const AttentionConfig& config, const float* rows, size_t stride, size_t count, float* keys);

// Whether keys and values stand as floats in caches, ready to be read, and need no room.
bool stand_packed(const AttentionInput& input);

// Packs tile index of one kv head of a sequence into its place; of input only key and value are read, or the cache that
// has it packed.
kernels::KeyTile pack_tile(const AttentionConfig& config, const AttentionInput& input, const Sequence& sequence,
                           size_t kv_head, size_t index, const PackedPlace& place);

// The tiles of which some row sees a key.
std::span<const kernels::KeyTile> tiles_seen(std::span<const KeyRange> seen, std::span<const kernels::KeyTile> tiles);

// Keys and values of all sequences in panels for kernels::tile_product, tile by tile; the query heads of a group share
// those of their kv head. Tiles stand at keys 0, 256, 512, ... of each sequence.
class PackedKeys {
 public:
  // Packs in parallel. Packing again takes new memory only if there is not enough.
  void pack(const AttentionConfig& config, const AttentionInput& input, std::span<const Sequence> sequences);

  std::span<const kernels::KeyTile> tiles(size_t sequence, size_t kv_head) const {
    const Place& place = places_[sequence];
    return {tiles_.data() + place.first_tile + kv_head * place.num_tiles, place.num_tiles};
  }

 private:
  // Where the tiles of one sequence stand: those of kv head h from tile first_tile + h num_tiles and key
  // first_key + h room on.
  struct Place {
    size_t num_tiles, first_tile, room, first_key;
  };
  struct Unit {
    size_t sequence, kv_head, index;
  };

  std::vector<Place> places_;
  std::vector<Unit> units_;
  FloatRoom keys_;                       // [keys of all, packed_key_width], panels inside a tile
  FloatRoom values_;                     // [keys of all, packed_value_width], panels inside a tile
  std::vector<kernels::KeyTile> tiles_;  // [tiles of all]
};

}  // namespace clearhead::attention
