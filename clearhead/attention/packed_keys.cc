// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/packed_keys.h"

#include <algorithm>
#include <cmath>

#include "clearhead/attention/merge.h"
#include "clearhead/base/parallel.h"
#include "clearhead/kernels/tile.h"

namespace clearhead::attention {
namespace {

bool all_finite(const float* rows, size_t stride, size_t count, size_t width) {
  for (size_t row = 0; row < count; ++row) {
    for (size_t i = 0; i < width; ++i) {
      if (!std::isfinite(rows[row * stride + i])) return false;
    }
  }
  return true;
}

}  // namespace

PackedKeys::PackedKeys(const AttentionConfig& config, const AttentionInput& input, std::span<const Sequence> sequences)
    : num_kv_heads_(config.num_kv_heads), head_dim_(config.head_dim), value_dim_(config.value_dim) {
  size_t tiles = 0, keys = 0;
  std::vector<Unit> units;
  for (const Sequence& sequence : sequences) {
    const Place place{sequence.key_len, (sequence.key_len + kKeyTile - 1) / kKeyTile, tiles,
                      kernels::panel_count(sequence.key_len) * kernels::kPanelWidth, keys};
    for (size_t unit = 0; unit < num_kv_heads_ * place.num_tiles; ++unit) {
      units.push_back({places_.size(), unit / place.num_tiles, unit % place.num_tiles});
    }
    places_.push_back(place);
    tiles += num_kv_heads_ * place.num_tiles;
    keys += num_kv_heads_ * place.room;
  }
  keys_ = tensor::Tensor({keys, head_dim_});
  values_ = tensor::Tensor({keys, kernels::panel_count(value_dim_) * kernels::kPanelWidth});
  finite_.resize(tiles);
  base::parallel_for(units.size(), [&](size_t unit) { pack(input, sequences[units[unit].sequence], units[unit]); });
}

size_t PackedKeys::tile_number(const Unit& unit) const {
  const Place& place = places_[unit.sequence];
  return place.first_tile + unit.kv_head * place.num_tiles + unit.index;
}

PackedKeys::Tile PackedKeys::tile(size_t sequence, size_t kv_head, size_t index) const {
  const Place& place = places_[sequence];
  const size_t first = index * kKeyTile, start = place.first_key + kv_head * place.room + first;
  return {first, std::min(kKeyTile, place.key_len - first), keys_.as<float>().data() + start * head_dim_,
          values_.as<float>().data() + start * values_.shape()[1],
          finite_[tile_number({sequence, kv_head, index})] != 0};
}

void PackedKeys::pack(const AttentionInput& input, const Sequence& sequence, const Unit& unit) {
  const Tile where = tile(unit.sequence, unit.kv_head, unit.index);
  const size_t first_key = sequence.batch * input.key_len + sequence.key_begin + where.first;
  const size_t first_row = first_key * num_kv_heads_ + unit.kv_head;
  const size_t key_stride = num_kv_heads_ * head_dim_, value_stride = num_kv_heads_ * value_dim_;
  const float* keys = input.key.data() + first_row * head_dim_;
  const float* values = input.value.data() + first_row * value_dim_;
  const auto room = [](tensor::Tensor& all, const float* from, size_t columns, size_t depth) {
    const auto floats = all.as<float>();
    return floats.subspan(static_cast<size_t>(from - floats.data()),
                          kernels::panel_count(columns) * kernels::kPanelWidth * depth);
  };
  kernels::pack_rows(keys, key_stride, head_dim_, where.count, room(keys_, where.keys, where.count, head_dim_));
  kernels::pack_columns(values, value_stride, where.count, value_dim_,
                        room(values_, where.values, value_dim_, where.count));
  finite_[tile_number(unit)] = all_finite(values, value_stride, where.count, value_dim_) ? 1 : 0;
}

}  // namespace clearhead::attention
