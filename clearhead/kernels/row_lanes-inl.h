// SPDX-License-Identifier: Apache-2.0
// Sums over 16 virtual lanes, for 16 rows together.
#if defined(CLEARHEAD_KERNELS_ROW_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_KERNELS_ROW_LANES_INL_H
#undef CLEARHEAD_KERNELS_ROW_LANES_INL_H
#else
#define CLEARHEAD_KERNELS_ROW_LANES_INL_H
#endif

#include <hwy/highway.h>
#include <cstddef>

#include "clearhead/kernels/transpose-inl.h"
#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

// Virtual lanes of up to 16 rows, folded 8, 4, 2, 1 for all rows together, so that a step works on whole registers.
class RowLanes {
 public:
  // For the first rows alone: the others have lanes of 0.
  HWY_INLINE explicit RowLanes(size_t rows) {
    for (size_t row = rows; row < kVirtualLanes; ++row) {
      for (size_t r = 0; r < kRegisters; ++r) set(row, r, hn::Zero(FloatTag()));
    }
  }

  HWY_INLINE void set(size_t row, size_t r, FloatVec v) { hn::Store(v, FloatTag(), lanes_[row] + r * kLanes); }

  // Shapes: columns [lane, row].
  HWY_INLINE void transpose(float (&columns)[kVirtualLanes][kVirtualLanes]) const {
    for (size_t lane = 0; lane < kVirtualLanes; lane += 4) {
      transpose_4_by_16(&lanes_[0][lane], kVirtualLanes, columns[lane]);
    }
  }

  // results [16]: virtual lane i with lane i + w for w = 8, 4, 2, 1, the lower one first.
  template <class Combine>
  HWY_INLINE void fold(const Combine& combine, float* results) const {
    for (size_t first = 0; first < kVirtualLanes; first += kLanes) {
#if HWY_TARGET == HWY_SCALAR
      results[first] = hn::GetLane(first_lanes(first, combine));
#else
      hn::Store(last_four(combine, four(combine, first), four(combine, first + 1), four(combine, first + 2),
                          four(combine, first + 3)),
                FloatTag(), results + first);
#endif
    }
  }

 private:
  // One register of a row: its virtual lanes i and i + w combined down to w = kLanes.
  template <class Combine>
  HWY_INLINE FloatVec first_lanes(size_t row, const Combine& combine) const {
    FloatVec registers[kRegisters];
    for (size_t r = 0; r < kRegisters; ++r) registers[r] = hn::Load(FloatTag(), lanes_[row] + r * kLanes);
    for (size_t width = kRegisters / 2; width > 0; width /= 2) {
      for (size_t r = 0; r < width; ++r) registers[r] = combine(registers[r], registers[r + width]);
    }
    return registers[0];
  }

#if HWY_TARGET != HWY_SCALAR
  // Four lanes are left of each of the rows row, row + 4, ..., a block of the register for each.
  template <class Combine>
  HWY_INLINE FloatVec four(const Combine& combine, size_t row) const {
    if constexpr (kLanes == 4) {
      return first_lanes(row, combine);
    } else if constexpr (kLanes == 8) {
      return lower_with_upper(combine, row, row + 4);
    } else {
      const FloatVec x = lower_with_upper(combine, row, row + 8), y = lower_with_upper(combine, row + 4, row + 12);
      return combine(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(y), x), hn::OddEvenBlocks(y, hn::SwapAdjacentBlocks(x)));
    }
  }

  // Half a register is left of each of two rows.
  template <class Combine>
  HWY_INLINE FloatVec lower_with_upper(const Combine& combine, size_t row, size_t next) const {
    const FloatTag tag;
    const FloatVec a = first_lanes(row, combine), b = first_lanes(next, combine);
    return combine(hn::ConcatLowerLower(tag, b, a), hn::ConcatUpperUpper(tag, b, a));
  }

  // Inside each block: the four lanes of a, b, c and d become one lane each, in this order.
  template <class Combine>
  static HWY_INLINE FloatVec last_four(const Combine& combine, FloatVec a, FloatVec b, FloatVec c, FloatVec d) {
    const FloatVec even = last_two(combine, a, c), odd = last_two(combine, b, d);
    return combine(hn::OddEven(hn::Shuffle2301(odd), even), hn::OddEven(odd, hn::Shuffle2301(even)));
  }
  template <class Combine>
  static HWY_INLINE FloatVec last_two(const Combine& combine, FloatVec a, FloatVec b) {
    const FloatTag tag;
    const hn::Repartition<uint64_t, FloatTag> pairs;
    const auto x = hn::BitCast(pairs, a), y = hn::BitCast(pairs, b);
    return combine(hn::BitCast(tag, hn::InterleaveLower(pairs, x, y)),
                   hn::BitCast(tag, hn::InterleaveUpper(pairs, x, y)));
  }
#endif

  alignas(64) float lanes_[kVirtualLanes][kVirtualLanes];  // [row, lane]
};

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();
#endif
