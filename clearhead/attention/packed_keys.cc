// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/packed_keys.h"

#include <algorithm>

#include "clearhead/base/parallel.h"

namespace clearhead::attention {

kernels::KeyTile pack_tile(const AttentionConfig& config, const AttentionInput& input, const Sequence& sequence,
                           size_t kv_head, size_t index, const PackedPlace& place) {
  const size_t first = index * kKeyTile, count = std::min(kKeyTile, sequence.key_len - first);
  const size_t first_key = sequence.batch * input.key_len + sequence.key_begin + first;
  const size_t row = first_key * config.num_kv_heads + kv_head;
  const size_t key_stride = config.num_kv_heads * config.head_dim;
  const size_t value_stride = config.num_kv_heads * config.value_dim;
  const float* key_rows = input.key.data() + row * config.head_dim;
  const float* value_rows = input.value.data() + row * config.value_dim;
  float* keys = place.keys + first * config.head_dim;
  float* values = place.values + first * padded_value_dim(config);
  kernels::pack_rows(key_rows, key_stride, config.head_dim, count, {keys, key_room(count) * config.head_dim});
  kernels::pack_columns(value_rows, value_stride, count, config.value_dim, {values, padded_value_dim(config) * count});
  return {first, count, keys, values, kernels::all_finite(value_rows, value_stride, count, config.value_dim)};
}

void PackedKeys::pack(const AttentionConfig& config, const AttentionInput& input, std::span<const Sequence> sequences) {
  size_t tiles = 0, keys = 0;
  places_.clear();
  units_.clear();
  for (const Sequence& sequence : sequences) {
    const Place place{tile_count(sequence.key_len), tiles, key_room(sequence.key_len), keys};
    for (size_t unit = 0; unit < config.num_kv_heads * place.num_tiles; ++unit) {
      units_.push_back({places_.size(), unit / place.num_tiles, unit % place.num_tiles});
    }
    places_.push_back(place);
    tiles += config.num_kv_heads * place.num_tiles;
    keys += config.num_kv_heads * place.room;
  }
  float* packed_keys = keys_.at_least(keys * config.head_dim);
  float* packed_values = values_.at_least(keys * padded_value_dim(config));
  tiles_.resize(tiles);
  base::parallel_for(units_.size(), [&](size_t number) {
    const auto& [sequence, kv_head, index] = units_[number];
    const Place& place = places_[sequence];
    const size_t first = place.first_key + kv_head * place.room;
    tiles_[place.first_tile + kv_head * place.num_tiles + index] =
        pack_tile(config, input, sequences[sequence], kv_head, index,
                  {packed_keys + first * config.head_dim, packed_values + first * padded_value_dim(config)});
  });
}

}  // namespace clearhead::attention
