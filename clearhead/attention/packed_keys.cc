// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/packed_keys.h"

#include <algorithm>

#include "clearhead/attention/key_value_cache.h"
#include "clearhead/base/parallel.h"

namespace clearhead::attention {
namespace {

bool in_pairs(const AttentionConfig& config) { return config.precision == Precision::bfloat16; }

kernels::Pair* pairs_at(float* place) { return reinterpret_cast<kernels::Pair*>(place); }

// Returns whether all values are finite as they are packed.
bool pack_values(const AttentionConfig& config, const float* rows, size_t stride, size_t count, float* values) {
  if (in_pairs(config)) {
    const std::span<kernels::Pair> pairs(pairs_at(values), padded_value_dim(config) * kernels::pair_count(count));
    kernels::pack_columns_to_pairs(rows, stride, count, config.value_dim, pairs);
    return kernels::all_finite(pairs);
  }
  return kernels::pack_values(rows, stride, count, config.value_dim, values, count * kernels::kPanelWidth);
}

}  // namespace

kernels::KeyTile tile_at(const AttentionConfig& config, size_t first, size_t count, const PackedPlace& place) {
  if (!in_pairs(config)) return {first, count, count, place.keys, place.values, true};
  return {first, count, count, nullptr, nullptr, true, pairs_at(place.keys), pairs_at(place.values)};
}

void pack_keys(const AttentionConfig& config, const float* rows, size_t stride, size_t count, float* keys) {
  const size_t size = key_room(count) * packed_key_width(config);
  if (in_pairs(config)) {
    return kernels::pack_rows_to_pairs(rows, stride, config.head_dim, count, {pairs_at(keys), size});
  }
  kernels::pack_rows(rows, stride, config.head_dim, count, {keys, size});
}

bool stand_packed(const AttentionInput& input) {
  return !input.caches.empty() && std::ranges::all_of(input.caches, [](const KeyValueCache* cache) {
    return cache->kept() == Precision::single;
  });
}

kernels::KeyTile pack_tile(const AttentionConfig& config, const AttentionInput& input, const Sequence& sequence,
                           size_t kv_head, size_t index, const PackedPlace& place) {
  const size_t first = index * kKeyTile;
  const auto behind = [first](float* room, size_t width) { return room == nullptr ? room : room + first * width; };
  const PackedPlace packed{behind(place.keys, packed_key_width(config)),
                           behind(place.values, packed_value_width(config))};
  if (!input.caches.empty()) return input.caches[sequence.batch]->tile(kv_head, index, packed.keys, packed.values);
  const size_t count = std::min(kKeyTile, sequence.key_len - first);
  const size_t first_key = sequence.batch * input.key_len + sequence.key_begin + first;
  const size_t row = first_key * config.num_kv_heads + kv_head;
  const size_t key_stride = config.num_kv_heads * config.head_dim;
  const size_t value_stride = config.num_kv_heads * config.value_dim;
  thread_local FloatRoom key_floats, value_floats;  // of a narrow type
  const FloatRows keys = input.key.rows(row * config.head_dim, count, config.head_dim, key_stride, key_floats);
  const FloatRows values =
      input.value.rows(row * config.value_dim, count, config.value_dim, value_stride, value_floats);
  kernels::KeyTile tile = tile_at(config, first, count, packed);
  pack_keys(config, keys.data, keys.stride, count, packed.keys);
  tile.finite = pack_values(config, values.data, values.stride, count, packed.values);
  return tile;
}

std::span<const kernels::KeyTile> tiles_seen(std::span<const KeyRange> seen, std::span<const kernels::KeyTile> tiles) {
  size_t begin = tiles.size() * kKeyTile, end = 0;
  for (const KeyRange& row : seen) {
    if (row.begin >= row.end) continue;
    begin = std::min(begin, row.begin);
    end = std::max(end, row.end);
  }
  if (begin >= end) return {};
  return tiles.subspan(begin / kKeyTile, tile_count(end) - begin / kKeyTile);
}

void PackedKeys::pack(const AttentionConfig& config, const AttentionInput& input, std::span<const Sequence> sequences) {
  size_t tiles = 0, keys = 0;
  places_.clear();
  units_.clear();
  for (const Sequence& sequence : sequences) {
    const size_t room = stand_packed(input) ? 0 : key_room(sequence.key_len);
    const Place place{tile_count(sequence.key_len), tiles, room, keys};
    for (size_t unit = 0; unit < config.num_kv_heads * place.num_tiles; ++unit) {
      units_.push_back({places_.size(), unit / place.num_tiles, unit % place.num_tiles});
    }
    places_.push_back(place);
    tiles += config.num_kv_heads * place.num_tiles;
    keys += config.num_kv_heads * place.room;
  }
  const size_t key_width = packed_key_width(config), value_width = packed_value_width(config);
  float* packed_keys = keys_.at_least(keys * key_width);
  float* packed_values = values_.at_least(keys * value_width);
  tiles_.resize(tiles);
  base::parallel_for(units_.size(), [&](size_t number) {
    const auto& [sequence, kv_head, index] = units_[number];
    const Place& place = places_[sequence];
    const size_t first = place.first_key + kv_head * place.room;
    tiles_[place.first_tile + kv_head * place.num_tiles + index] =
        pack_tile(config, input, sequences[sequence], kv_head, index,
                  {packed_keys + first * key_width, packed_values + first * value_width});
  });
}

}  // namespace clearhead::attention
