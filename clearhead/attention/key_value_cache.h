// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "clearhead/attention/config.h"
#include "clearhead/base/memory.h"
#include "clearhead/kernels/attention_tile.h"

namespace clearhead::attention {

// The keys and values of one sequence, kept in the panels that attention reads, so that nothing is packed again: rows
// are packed where they are produced and stay where they are. Attention over it (AttentionInput::caches) has the bits
// of attention over the same keys and values as they came, however they came.
class KeyValueCache {
 public:
  // For the kv heads and sizes of a config in single precision. Throws: Error (usage) for another precision.
  explicit KeyValueCache(const AttentionConfig& config);

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

  // Bytes that are kept.
  size_t bytes() const;

  // One tile of a kv head; nothing stands in one that was evicted.
  const kernels::KeyTile& tile(size_t kv_head, size_t index) const { return tiles_[index * num_kv_heads_ + kv_head]; }

 private:
  size_t key_room() const;    // floats of the keys of one tile of a kv head
  size_t value_room() const;  // and of its values
  void add_tile();
  void append_to_tile(size_t kv_head, std::span<const float> key, std::span<const float> value, size_t count);

  size_t num_kv_heads_, head_dim_, value_dim_;
  size_t key_len_ = 0, first_tile_ = 0;
  std::vector<base::AlignedBuffer> rooms_;  // [tiles]: [num_kv_heads, keys and values]
  std::vector<kernels::KeyTile> tiles_;     // [tiles, num_kv_heads]
};

}  // namespace clearhead::attention
