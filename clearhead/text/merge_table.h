// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace clearhead::text {

// What two neighbouring pieces become, and how early that was learned: an open-addressing hash table of their places
// in a list of the merges. Most pairs have no merge and end at a free slot, of which many lie on one cache line.
class MergeTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Merge {
    uint32_t rank;  // kNone: the two are never merged
    uint32_t id;
  };

  // Room for `count` merges.
  explicit MergeTable(size_t count)
      : slots_(std::bit_ceil(count * 2 + 2), kNone),
        mask_(slots_.size() - 1),
        shift_(64 - std::countr_zero(slots_.size())) {
    merges_.reserve(count);
  }

  // At most `count` may be set; of equal pairs the last counts.
  void set(uint32_t left, uint32_t right, Merge merge) {
    slots_[slot_of(left, right)] = static_cast<uint32_t>(merges_.size());
    merges_.push_back({left, right, merge});
  }

  Merge find(uint32_t left, uint32_t right) const {
    const uint32_t place = slots_[slot_of(left, right)];
    return place == kNone ? Merge{kNone, 0} : merges_[place].merge;
  }

 private:
  struct Entry {
    uint32_t left, right;
    Merge merge;
  };

  // The slot in which the pair stands, or would.
  size_t slot_of(uint32_t left, uint32_t right) const {
    const uint64_t pair = uint64_t{left} << 32 | right;
    size_t slot = ((pair ^ pair >> 29) * 0x9e3779b97f4a7c15u) >> shift_;
    while (slots_[slot] != kNone && (merges_[slots_[slot]].left != left || merges_[slots_[slot]].right != right)) {
      slot = (slot + 1) & mask_;
    }
    return slot;
  }

  std::vector<uint32_t> slots_;  // places in merges_, kNone: free
  std::vector<Entry> merges_;
  size_t mask_;
  int shift_;
};

}  // namespace clearhead::text
