// SPDX-License-Identifier: Apache-2.0
// One row of one key tile: its largest score, its exponentials and their sum.
#if defined(CLEARHEAD_KERNELS_SOFTMAX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_KERNELS_SOFTMAX_INL_H
#undef CLEARHEAD_KERNELS_SOFTMAX_INL_H
#else
#define CLEARHEAD_KERNELS_SOFTMAX_INL_H
#endif

#include <hwy/highway.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "clearhead/kernels/elementary-inl.h"
#include "clearhead/kernels/softmax.h"
#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

inline bool holds_nan(const float* x, size_t count) {
  return std::any_of(x, x + count, [](float value) { return value != value; });
}

// The largest element, -inf if there is none. Where an element is NaN the result may be anything.
HWY_INLINE float row_maximum(const float* x, size_t count) {
  FloatVec maxima[kRegisters];
  std::fill_n(maxima, kRegisters, hn::Set(FloatTag(), -kInfinity));
  for_each_group(x, count, -kInfinity, [&](size_t r, FloatVec v) HWY_ATTR { maxima[r] = hn::Max(maxima[r], v); });
  return fold_registers(maxima, [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); });
}

// Replaces each x by map(x) and returns the sum over 16 virtual lanes.
template <class Map>
HWY_INLINE float map_and_sum(float* x, size_t count, Map map) {
  const FloatTag tag;
  VirtualLanes sums;
  size_t i = 0;
  for (; i + kVirtualLanes <= count; i += kVirtualLanes) {
    for (size_t r = 0; r < kRegisters; ++r) {
      const FloatVec y = map(hn::LoadU(tag, x + i + r * kLanes));
      hn::StoreU(y, tag, x + i + r * kLanes);
      sums.add(r, y);
    }
  }
  if (i < count) {
    alignas(64) float tail[kVirtualLanes];
    std::fill_n(tail, kVirtualLanes, -kInfinity);
    std::copy(x + i, x + count, tail);
    for (size_t r = 0; r < kRegisters; ++r) {
      const FloatVec y = map(hn::Load(tag, tail + r * kLanes));
      hn::Store(y, tag, tail + r * kLanes);
      sums.add(r, y);
    }
    std::copy_n(tail, count - i, x + i);
  }
  return sums.fold();
}

// softmax_tile for a tile in which every key that may not be seen has score -inf. In a NaN row every key becomes NaN.
HWY_INLINE RowSummary exponentials_of_tile(float* scores, size_t count) {
  const FloatTag tag;
  const float largest = row_maximum(scores, count);
  if (largest == -kInfinity && !holds_nan(scores, count)) {
    std::fill_n(scores, count, 0.0f);
    return {-kInfinity, 0.0f};
  }
  const float reference = std::ceil(largest) + 0.0f;  // + 0 turns -0 into 0
  const FloatVec references = hn::Set(tag, reference);
  const auto power = [&](FloatVec t) HWY_ATTR { return exp2_below_127(tag, hn::Sub(t, references)); };
  const float sum = map_and_sum(scores, count, power);
  if (sum == sum) return {reference, sum};
  std::fill_n(scores, count, canonical(sum));
  return {0.0f, canonical(sum)};
}

// References of 16 rows by their largest scores: + 0 turns -0 into 0; a row that sees no key takes 0.
HWY_INLINE void find_references(const float* largest, float* references) {
  const FloatTag tag;
  for (size_t i = 0; i < kVirtualLanes; i += kLanes) {
    const FloatVec top = hn::Load(tag, largest + i);
    const FloatVec reference = hn::Add(hn::Ceil(top), hn::Zero(tag));
    hn::Store(hn::IfThenZeroElse(hn::Eq(top, hn::Set(tag, -kInfinity)), reference), tag, references + i);
  }
}

// Gives score -inf to keys that may not be seen.
HWY_INLINE void hide_keys(float* scores, const uint8_t* visible, size_t count) {
  for (size_t j = 0; j < count; ++j) scores[j] = visible[j] != 0 ? scores[j] : -kInfinity;
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();
#endif
