// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "clearhead/attention/config.h"
#include "clearhead/attention/rounding.h"
#include "clearhead/base/memory.h"
#include "clearhead/kernels/attention_tile.h"

namespace clearhead::attention {

// The keys and values of one sequence, kept in the panels that attention reads, so that nothing is packed again: rows
// are packed where they are produced and stay where they are. Attention over it (AttentionInput::caches) has the bits
// of attention over the same keys and values as they came, however they came; with keys and values kept in bfloat16,
// over them as round_to_bfloat16 leaves them.
class KeyValueCache {
 public:
  // For the kv heads and sizes of a config, whose products are in single precision; kept: what keys and values are
  // kept in. Throws: Error (usage) for another precision of the products.
  explicit KeyValueCache(const AttentionConfig& config, Precision kept = Precision::single);

  // Adds count keys and values behind the others; takes memory for whole tiles only.
  // Shapes: key [count, num_kv_heads, head_dim], after rotary positions; value [count, num_kv_heads, value_dim].
  // Throws: Error (usage) if the two do not have the same number of whole rows.
  void append(std::span<const float> key, std::span<const float> value);

  // Forgets all keys from key_len on. Throws: Error (usage) if there are not so many, or they were evicted.
  void truncate(size_t key_len);

  // Forgets the keys in front of the tile of this index, for good, and gives their memory back. The others keep their
  // places: what is left has the bits that a mask over the evicted keys gives.
  // Throws: Error (usage) if one of them is not whole yet.
  void evict_before(size_t tile);

  // Counted from the first key ever appended; keys [0, evicted()) are no longer there.
  size_t key_len() const { return key_len_; }
  size_t evicted() const { return first_tile_ * kernels::kTileKeys; }

  // Whether it holds keys and values of these sizes.
  bool fits(const AttentionConfig& config) const;

  Precision kept() const { return kept_; }

  // Bytes that are kept, and those that key_len keys take.
  size_t bytes() const;
  static size_t bytes(const AttentionConfig& config, size_t key_len, Precision kept = Precision::single);

  // How far the keys and values are from what was appended, all that were ever appended together.
  void add_error(const RoundingError& error) { error_.add(error); }
  const RoundingError& error() const { return error_; }

  // One tile of a kv head: where it stands or, if it is not kept in floats, in the room that is given. Nothing stands
  // in one that was evicted.
  // Shapes: keys [keys up to whole panels, head_dim], values [panels of value_dim, keys, 16].
  kernels::KeyTile tile(size_t kv_head, size_t index, float* keys, float* values) const;

 private:
  size_t key_room() const { return kernels::kTileKeys * head_dim_; }  // numbers: the keys of one tile of a kv head
  size_t value_room() const;                                          // and its values
  size_t number_bytes() const { return kept_ == Precision::single ? sizeof(float) : sizeof(uint16_t); }
  std::byte* place(size_t index, size_t kv_head);
  void add_tile();
  void append_to_tile(size_t kv_head, std::span<const float> key, std::span<const float> value, size_t count);

  void append_rounded(size_t kv_head, std::span<const float> key, std::span<const float> value, size_t count);
  bool kept_finite(size_t kv_head, size_t index) const;

  size_t num_kv_heads_, head_dim_, value_dim_;
  Precision kept_;
  RoundingError error_;
  size_t key_len_ = 0, first_tile_ = 0;
  std::vector<base::AlignedBuffer> rooms_;  // [tiles]: [num_kv_heads, keys and values]
  std::vector<kernels::KeyTile> tiles_;     // [tiles, num_kv_heads]
};

}  // namespace clearhead::attention
