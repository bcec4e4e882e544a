// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/packed_keys.h"

#include <algorithm>
#include <cmath>

#include "clearhead/attention/merge.h"
#include "clearhead/base/parallel.h"
#include "clearhead/kernels/tile.h"

namespace clearhead::attention {
namespace {

// Keys that there is room for: whole tiles, and for a single tile whole panels only.
size_t key_room(size_t key_len) {
  return key_len <= kKeyTile ? kernels::panel_count(key_len) * kernels::kPanelWidth : kKeyTile;
}

bool all_finite(const float* rows, size_t stride, size_t count, size_t width) {
  for (size_t row = 0; row < count; ++row) {
    for (size_t i = 0; i < width; ++i) {
      if (!std::isfinite(rows[row * stride + i])) return false;
    }
  }
  return true;
}

}  // namespace

PackedKeys::PackedKeys(const AttentionConfig& config, const AttentionInput& input)
    : num_kv_heads_(config.num_kv_heads),
      head_dim_(config.head_dim),
      value_dim_(config.value_dim),
      key_len_(input.key_len),
      num_tiles_((input.key_len + kKeyTile - 1) / kKeyTile) {
  const size_t value_room = kernels::panel_count(value_dim_) * kernels::kPanelWidth;
  keys_ = tensor::Tensor({input.batch, num_kv_heads_, num_tiles_, key_room(key_len_), head_dim_});
  values_ = tensor::Tensor({input.batch, num_kv_heads_, num_tiles_, key_room(key_len_), value_room});
  const size_t tiles = input.batch * num_kv_heads_ * num_tiles_;
  finite_.resize(tiles);
  base::parallel_for(tiles, [&](size_t unit) {
    const size_t sequence = unit / num_tiles_;
    pack(input, sequence / num_kv_heads_, sequence % num_kv_heads_, unit % num_tiles_);
  });
}

PackedKeys::Tile PackedKeys::tile(size_t batch, size_t kv_head, size_t index) const {
  const size_t unit = (batch * num_kv_heads_ + kv_head) * num_tiles_ + index, room = key_room(key_len_);
  const size_t value_room = kernels::panel_count(value_dim_) * kernels::kPanelWidth;
  const size_t first = index * kKeyTile;
  return {first, std::min(kKeyTile, key_len_ - first), keys_.as<float>().data() + unit * room * head_dim_,
          values_.as<float>().data() + unit * room * value_room, finite_[unit] != 0};
}

void PackedKeys::pack(const AttentionInput& input, size_t batch, size_t kv_head, size_t index) {
  const Tile where = tile(batch, kv_head, index);
  const size_t first_row = (batch * key_len_ + where.first) * num_kv_heads_ + kv_head;
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
  const size_t unit = (batch * num_kv_heads_ + kv_head) * num_tiles_ + index;
  finite_[unit] = all_finite(values, value_stride, where.count, value_dim_) ? 1 : 0;
}

}  // namespace clearhead::attention
