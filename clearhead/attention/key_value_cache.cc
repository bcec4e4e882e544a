// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/key_value_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "clearhead/base/error.h"
#include "clearhead/base/parallel.h"
#include "clearhead/kernels/tile.h"

namespace clearhead::attention {
namespace {

using kernels::kPanelWidth;
using kernels::kTileKeys;

float* room_of(base::AlignedBuffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }

// Packs rows behind the keys that stand in a tile already. Shapes: rows [count, head_dim], stride floats from row to
// row; panels [keys of a tile, head_dim].
void pack_keys_behind(const float* rows, size_t stride, size_t count, size_t head_dim, size_t place, float* panels) {
  for (; count > 0 && place % kPanelWidth != 0; --count, ++place, rows += stride) {
    float* column = panels + place / kPanelWidth * kPanelWidth * head_dim + place % kPanelWidth;
    for (size_t k = 0; k < head_dim; ++k) column[k * kPanelWidth] = rows[k];
  }
  const size_t room = kernels::panel_count(count) * kPanelWidth * head_dim;
  kernels::pack_rows(rows, stride, head_dim, count, {panels + place * head_dim, room});
}

}  // namespace

KeyValueCache::KeyValueCache(const AttentionConfig& config)
    : num_kv_heads_(config.num_kv_heads), head_dim_(config.head_dim), value_dim_(config.value_dim) {
  config.check();
  if (config.precision == Precision::single) return;
  base::refuse("key value cache", "keys and values in single precision", "bfloat16");
}

size_t KeyValueCache::key_room() const { return kTileKeys * head_dim_; }

size_t KeyValueCache::value_room() const { return kernels::panel_count(value_dim_) * kPanelWidth * kTileKeys; }

bool KeyValueCache::fits(const AttentionConfig& config) const {
  return config.precision == Precision::single && config.num_kv_heads == num_kv_heads_ &&
         config.head_dim == head_dim_ && config.value_dim == value_dim_;
}

size_t KeyValueCache::bytes() const {
  size_t bytes = 0;
  for (const base::AlignedBuffer& room : rooms_) bytes += room.size();
  return bytes;
}

void KeyValueCache::add_tile() {
  const size_t first = rooms_.size() * kTileKeys;
  rooms_.emplace_back(num_kv_heads_ * (key_room() + value_room()) * sizeof(float));
  for (size_t kv_head = 0; kv_head < num_kv_heads_; ++kv_head) {
    const float* keys = room_of(rooms_.back()) + kv_head * (key_room() + value_room());
    tiles_.push_back({first, 0, kTileKeys, keys, keys + key_room(), true});
  }
}

void KeyValueCache::append(std::span<const float> key, std::span<const float> value) {
  const size_t key_width = num_kv_heads_ * head_dim_, value_width = num_kv_heads_ * value_dim_;
  const size_t count = key.size() / key_width;
  if (key.size() % key_width != 0 || value.size() % value_width != 0 || value.size() / value_width != count) {
    base::refuse("key value cache", fmt::format("as many keys of {} numbers as values of {}", key_width, value_width),
                 fmt::format("{} and {} numbers", key.size(), value.size()));
  }
  for (size_t done = 0; done < count;) {
    if (key_len_ % kTileKeys == 0) add_tile();
    const size_t part = std::min(count - done, kTileKeys - key_len_ % kTileKeys);
    base::parallel_for(num_kv_heads_, [&](size_t kv_head) {
      append_to_tile(kv_head, key.subspan(done * key_width), value.subspan(done * value_width), part);
    });
    key_len_ += part;
    done += part;
  }
}

void KeyValueCache::append_to_tile(size_t kv_head, std::span<const float> key, std::span<const float> value,
                                   size_t count) {
  kernels::KeyTile& tile = tiles_[tiles_.size() - num_kv_heads_ + kv_head];
  float* keys = room_of(rooms_.back()) + kv_head * (key_room() + value_room());
  float* values = keys + key_room() + tile.count * kPanelWidth;
  pack_keys_behind(key.data() + kv_head * head_dim_, num_kv_heads_ * head_dim_, count, head_dim_, tile.count, keys);
  tile.finite &= kernels::pack_values(value.data() + kv_head * value_dim_, num_kv_heads_ * value_dim_, count,
                                      value_dim_, values, kTileKeys * kPanelWidth);
  tile.count += count;
}

void KeyValueCache::truncate(size_t key_len) {
  if (key_len > key_len_ || key_len < evicted()) {
    base::refuse("key value cache", fmt::format("a length from {} to {} to keep", evicted(), key_len_),
                 fmt::format("{}", key_len));
  }
  key_len_ = key_len;
  rooms_.resize((key_len + kTileKeys - 1) / kTileKeys);
  tiles_.resize(rooms_.size() * num_kv_heads_);
  if (key_len % kTileKeys == 0) return;
  for (size_t kv_head = 0; kv_head < num_kv_heads_; ++kv_head) {
    kernels::KeyTile& tile = tiles_[tiles_.size() - num_kv_heads_ + kv_head];
    tile.count = key_len % kTileKeys;
    if (tile.finite) continue;
    tile.finite = true;  // unless a value that is kept says otherwise
    for (size_t panel = 0; panel < kernels::panel_count(value_dim_); ++panel) {
      const float* values = tile.values + panel * kTileKeys * kPanelWidth;
      tile.finite &= std::all_of(values, values + tile.count * kPanelWidth, [](float x) { return std::isfinite(x); });
    }
  }
}

void KeyValueCache::evict_before(size_t tile) {
  if (tile > key_len_ / kTileKeys) {
    base::refuse("key value cache", fmt::format("at most {} whole tiles to evict", key_len_ / kTileKeys),
                 fmt::format("{}", tile));
  }
  for (; first_tile_ < tile; ++first_tile_) {
    rooms_[first_tile_] = {};
    for (size_t kv_head = 0; kv_head < num_kv_heads_; ++kv_head) {
      kernels::KeyTile& gone = tiles_[first_tile_ * num_kv_heads_ + kv_head];
      gone.keys = gone.values = nullptr;
    }
  }
}

}  // namespace clearhead::attention
