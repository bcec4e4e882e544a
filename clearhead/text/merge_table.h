// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace clearhead::text {

// What two neighbouring pieces become, and how early that was learned: an open-addressing hash table.
class MergeTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Merge {
    uint32_t rank;  // kNone: the two are never merged
    uint32_t id;
  };

  explicit MergeTable(size_t count)
      : slots_(std::bit_ceil(count * 2 + 2)), mask_(slots_.size() - 1), shift_(64 - std::countr_zero(slots_.size())) {}

  // At most `count` may be set; of equal pairs the last counts.
  void set(uint32_t left, uint32_t right, Merge merge) {
    const uint64_t pair = pair_of(left, right);
    size_t slot = slot_of(pair);
    while (slots_[slot].merge.rank != kNone && slots_[slot].pair != pair) slot = (slot + 1) & mask_;
    slots_[slot] = {pair, merge};
  }

  Merge find(uint32_t left, uint32_t right) const {
    const uint64_t pair = pair_of(left, right);
    for (size_t slot = slot_of(pair);; slot = (slot + 1) & mask_) {
      const Slot& own = slots_[slot];
      if (own.merge.rank == kNone || own.pair == pair) return own.merge;
    }
  }

 private:
  struct Slot {
    uint64_t pair = 0;
    Merge merge = {kNone, 0};  // rank kNone: free
  };

  static uint64_t pair_of(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }
  size_t slot_of(uint64_t pair) const { return ((pair ^ pair >> 29) * 0x9e3779b97f4a7c15u) >> shift_; }

  std::vector<Slot> slots_;
  size_t mask_;
  int shift_;
};

}  // namespace clearhead::text
