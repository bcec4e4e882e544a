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

// Virtual lanes of 16 rows, folded 8, 4, 2, 1 for all rows together.
class RowLanes {
 public:
  void set(size_t row, size_t r, FloatVec v) { hn::Store(v, FloatTag(), lanes_[row] + r * kLanes); }

  // Shapes: columns [lane, row].
  void transpose(float (&columns)[kVirtualLanes][kVirtualLanes]) const {
    for (size_t lane = 0; lane < kVirtualLanes; lane += 4) {
      transpose_4_by_16(&lanes_[0][lane], kVirtualLanes, columns[lane]);
    }
  }

  template <class Combine>
  void fold(const Combine& combine, float* results) const {
    alignas(64) float columns[kVirtualLanes][kVirtualLanes];
    transpose(columns);
    for (size_t first = 0; first < kVirtualLanes; first += kLanes) {
      FloatVec lanes[kVirtualLanes];
      for (size_t i = 0; i < kVirtualLanes; ++i) lanes[i] = hn::Load(FloatTag(), columns[i] + first);
      for (size_t width = kVirtualLanes / 2; width > 0; width /= 2) {
        for (size_t i = 0; i < width; ++i) lanes[i] = combine(lanes[i], lanes[i + width]);
      }
      hn::Store(lanes[0], FloatTag(), results + first);
    }
  }

 private:
  alignas(64) float lanes_[kVirtualLanes][kVirtualLanes] = {};  // [row, lane]
};

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();
#endif
