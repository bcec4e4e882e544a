// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/key_value_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "clearhead/base/checked.h"
#include "clearhead/base/error.h"
#include "clearhead/base/parallel.h"
#include "clearhead/kernels/tile.h"
#include "clearhead/kernels/widen.h"
#include "clearhead/tensor/dtype.h"

namespace clearhead::attention {
namespace {

using kernels::kPanelWidth;
using kernels::kTileKeys;

constexpr size_t kUncounted = std::numeric_limits<size_t>::max();

float* floats_at(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }
uint16_t* halves_at(std::byte* bytes) { return reinterpret_cast<uint16_t*>(bytes); }
const float* floats_at(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }
const uint16_t* halves_at(const std::byte* bytes) { return reinterpret_cast<const uint16_t*>(bytes); }

bool is_finite(uint16_t bfloat16) { return (bfloat16 & 0x7f80) != 0x7f80; }

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

KeyValueCache::KeyValueCache(const AttentionConfig& config, Precision kept)
    : num_kv_heads_(config.num_kv_heads), head_dim_(config.head_dim), value_dim_(config.value_dim), kept_(kept) {
  config.check();
  if (config.precision == Precision::single) return;
  base::refuse("key value cache", "keys and values in single precision", "bfloat16");
}

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

size_t KeyValueCache::bytes(const AttentionConfig& config, size_t key_len, Precision kept) {
  const KeyValueCache none(config, kept);
  const size_t tiles = key_len / kTileKeys + (key_len % kTileKeys == 0 ? 0 : 1);
  const auto of_tile = base::checked_add(none.key_room(), none.value_room()).value_or(kUncounted);
  return base::checked_product(std::array{tiles, none.num_kv_heads_, of_tile, none.number_bytes()})
      .value_or(kUncounted);
}

std::byte* KeyValueCache::place(size_t index, size_t kv_head) {
  return rooms_[index].data() + kv_head * (key_room() + value_room()) * number_bytes();
}

void KeyValueCache::add_tile() {
  const size_t first = rooms_.size() * kTileKeys;
  rooms_.emplace_back(num_kv_heads_ * (key_room() + value_room()) * number_bytes());
  for (size_t kv_head = 0; kv_head < num_kv_heads_; ++kv_head) {
    const float* keys = floats_at(place(rooms_.size() - 1, kv_head));
    const bool floats = kept_ == Precision::single;
    tiles_.push_back({first, 0, kTileKeys, floats ? keys : nullptr, floats ? keys + key_room() : nullptr, true});
  }
}

kernels::KeyTile KeyValueCache::tile(size_t kv_head, size_t index, float* keys, float* values) const {
  kernels::KeyTile tile = tiles_[index * num_kv_heads_ + kv_head];
  if (kept_ == Precision::single || index < first_tile_) return tile;
  const size_t panels = kernels::panel_count(tile.count) * kPanelWidth * head_dim_;
  const uint16_t* kept = halves_at(rooms_[index].data()) + kv_head * (key_room() + value_room());
  kernels::widen_bfloat16({kept, panels}, keys);
  const size_t panel = tile.count * kPanelWidth;
  for (size_t i = 0; i < kernels::panel_count(value_dim_); ++i) {
    kernels::widen_bfloat16({kept + key_room() + i * kTileKeys * kPanelWidth, panel}, values + i * panel);
  }
  tile.keys = keys;
  tile.values = values;
  tile.value_room = tile.count;
  return tile;
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
  if (kept_ != Precision::single) return append_rounded(kv_head, key, value, count);
  kernels::KeyTile& tile = tiles_[tiles_.size() - num_kv_heads_ + kv_head];
  float* keys = floats_at(place(rooms_.size() - 1, kv_head));
  float* values = keys + key_room() + tile.count * kPanelWidth;
  pack_keys_behind(key.data() + kv_head * head_dim_, num_kv_heads_ * head_dim_, count, head_dim_, tile.count, keys);
  tile.finite &= kernels::pack_values(value.data() + kv_head * value_dim_, num_kv_heads_ * value_dim_, count,
                                      value_dim_, values, kTileKeys * kPanelWidth);
  tile.count += count;
}

void KeyValueCache::append_rounded(size_t kv_head, std::span<const float> key, std::span<const float> value,
                                   size_t count) {
  kernels::KeyTile& tile = tiles_[tiles_.size() - num_kv_heads_ + kv_head];
  uint16_t* keys = halves_at(place(rooms_.size() - 1, kv_head));
  uint16_t* values = keys + key_room();
  const float* key_row = key.data() + kv_head * head_dim_;
  const float* value_row = value.data() + kv_head * value_dim_;
  for (size_t i = 0; i < count; ++i, key_row += num_kv_heads_ * head_dim_, value_row += num_kv_heads_ * value_dim_) {
    const size_t at = tile.count + i;
    uint16_t* column = keys + at / kPanelWidth * kPanelWidth * head_dim_ + at % kPanelWidth;
    for (size_t k = 0; k < head_dim_; ++k) column[k * kPanelWidth] = tensor::to_bfloat16(key_row[k]).bits;
    for (size_t k = 0; k < value_dim_; ++k) {
      uint16_t& number = values[(k / kPanelWidth * kTileKeys + at) * kPanelWidth + k % kPanelWidth];
      number = tensor::to_bfloat16(value_row[k]).bits;
      tile.finite &= is_finite(number);
    }
  }
  tile.count += count;
}

bool KeyValueCache::kept_finite(size_t kv_head, size_t index) const {
  const size_t count = tiles_[index * num_kv_heads_ + kv_head].count * kPanelWidth;
  const size_t first = kv_head * (key_room() + value_room()) + key_room();
  for (size_t panel = 0; panel < kernels::panel_count(value_dim_); ++panel) {
    const size_t at = first + panel * kTileKeys * kPanelWidth;
    const bool finite = kept_ == Precision::single
                            ? std::ranges::all_of(std::span(floats_at(rooms_[index].data()) + at, count),
                                                  [](float x) { return std::isfinite(x); })
                            : std::ranges::all_of(std::span(halves_at(rooms_[index].data()) + at, count), is_finite);
    if (!finite) return false;
  }
  return true;
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
    if (!tile.finite) tile.finite = kept_finite(kv_head, rooms_.size() - 1);  // what was not may be gone
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
