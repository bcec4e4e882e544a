// SPDX-License-Identifier: Apache-2.0
// Scores of rows become powers, with what is gathered on the way.
#if defined(CLEARHEAD_KERNELS_ROW_EXPONENTIALS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_KERNELS_ROW_EXPONENTIALS_INL_H
#undef CLEARHEAD_KERNELS_ROW_EXPONENTIALS_INL_H
#else
#define CLEARHEAD_KERNELS_ROW_EXPONENTIALS_INL_H
#endif

#include <hwy/highway.h>
#include <algorithm>
#include <cstddef>

#include "clearhead/kernels/attention_tile.h"
#include "clearhead/kernels/row_lanes-inl.h"
#include "clearhead/kernels/softmax-inl.h"
#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

// The largest score of each row and virtual lane; count is a multiple of 16. Shapes: maxima [rows, 16].
HWY_INLINE void find_maxima(const float* scores, size_t rows, size_t count, float* all_maxima) {
  const FloatTag tag;
  for (size_t row = 0; row < rows; ++row) {
    FloatVec maxima[kRegisters];
    std::fill_n(maxima, kRegisters, hn::Set(tag, -kInfinity));
    for (size_t i = 0; i < count; i += kVirtualLanes) {
      for (size_t r = 0; r < kRegisters; ++r) {
        maxima[r] = hn::Max(maxima[r], hn::LoadU(tag, scores + row * kScoreStride + i + r * kLanes));
      }
    }
    for (size_t r = 0; r < kRegisters; ++r) {
      hn::StoreU(maxima[r], tag, all_maxima + row * kVirtualLanes + r * kLanes);
    }
  }
}

// exponentials_of_tile for at most 16 rows at once, whose largest scores of each virtual lane are known; count is a
// multiple of 16. Shapes: maxima [rows, 16].
template <class Evidence>
HWY_INLINE void exponentials_of_rows(float* scores, size_t rows, size_t count, const float* maxima,
                                     RowSummary* summaries, Evidence evidence) {
  const FloatTag tag;
  RowLanes lanes(rows);
  alignas(64) float largest[kVirtualLanes], references[kVirtualLanes], sums[kVirtualLanes];
  for (size_t row = 0; row < rows; ++row) {
    for (size_t r = 0; r < kRegisters; ++r) {
      lanes.set(row, r, hn::LoadU(tag, maxima + row * kVirtualLanes + r * kLanes));
    }
  }
  lanes.fold([](FloatVec a, FloatVec b) HWY_ATTR { return hn::Max(a, b); }, largest);
  find_references(largest, references);
  evidence.see_scores(lanes, largest, scores, rows, count);
  for (size_t row = 0; row < rows; ++row) {
    const FloatVec reference = hn::Set(tag, references[row]);
    VirtualLanes sum;
    evidence.begin_row(row, scores + row * kScoreStride, count, maxima + row * kVirtualLanes, largest[row]);
    for (size_t i = 0; i < count; i += kVirtualLanes) {
      for (size_t r = 0; r < kRegisters; ++r) {
        float* place = scores + row * kScoreStride + i + r * kLanes;
        const FloatVec shifted = hn::Sub(hn::LoadU(tag, place), reference), power = exp2_below_127(tag, shifted);
        hn::StoreU(power, tag, place);
        sum.add(r, power);
        evidence.add(i + r * kLanes, shifted, power);
      }
    }
    for (size_t r = 0; r < kRegisters; ++r) lanes.set(row, r, sum.lanes(r));
    evidence.end_row(row);
  }
  lanes.fold([](FloatVec a, FloatVec b) HWY_ATTR { return hn::Add(a, b); }, sums);
  evidence.end(rows, sums);
  for (size_t row = 0; row < rows; ++row) {
    summaries[row] = sums[row] == 0 ? RowSummary{kNoReference, 0.0f} : RowSummary{references[row], sums[row]};
    if (sums[row] == sums[row]) continue;
    summaries[row] = {0.0f, canonical(sums[row])};
    std::fill_n(scores + row * kScoreStride, count, canonical(sums[row]));
  }
  evidence.see_powers(scores, rows, count, summaries);
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();
#endif
