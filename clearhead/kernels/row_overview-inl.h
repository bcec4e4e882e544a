// SPDX-License-Identifier: Apache-2.0
// Sums and maxima of the weights of at most 16 rows over bins of keys, tile by tile.
#if defined(CLEARHEAD_KERNELS_ROW_OVERVIEW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_KERNELS_ROW_OVERVIEW_INL_H
#undef CLEARHEAD_KERNELS_ROW_OVERVIEW_INL_H
#else
#define CLEARHEAD_KERNELS_ROW_OVERVIEW_INL_H
#endif

#include <hwy/highway.h>
#include <algorithm>
#include <cstddef>

#include "clearhead/kernels/attention_tile.h"
#include "clearhead/kernels/row_collect.h"
#include "clearhead/kernels/transpose-inl.h"
#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

// Lanes are rows, so that keys are added one by one and a bin may begin and end anywhere: the even keys, the odd keys,
// then both. Where a range of keys begins, which depends on companions, changes no bit: keys before it add 0.
class OverviewCollector {
 public:
  // Of rows from row on; first_key is that of the powers.
  OverviewCollector(const OverviewOfRows& overview, size_t row, size_t first_key)
      : overview_(overview), row_(row), first_key_(first_key) {}

  // powers [16, count], of which the first rows are there; count a multiple of 16. Rows are given in rising order in
  // each tile: what is written behind the last one is written again.
  HWY_INLINE void add(const float* powers, size_t rows, size_t count, const RowSummary* summaries) {
    const size_t tile = first_key_ / kTileKeys;
    float* references = overview_.references + tile * kRowStride + row_;
    for (size_t i = 0; i < kVirtualLanes; ++i) references[i] = i < rows ? summaries[i].reference : -kInfinity;
    part_ = overview_.first_parts[tile];
    const size_t last = overview_.first_parts[tile + 1];
    while (part_ < last && overview_.parts[part_].end <= first_key_) end_part();
    for (size_t i = 0; i < count && part_ < last; i += kVirtualLanes) {
      alignas(64) float columns[kVirtualLanes][kVirtualLanes];  // [key, row]
      for (size_t k = 0; k < kVirtualLanes; k += 4) transpose_4_by_16(powers + i + k, kScoreStride, columns[k]);
      for (size_t key = 0; key < kVirtualLanes && part_ < last;) {
        const size_t end = std::min(kVirtualLanes, overview_.parts[part_].end - first_key_ - i);
        if (key == 0 && end == kVirtualLanes) {
          for (size_t k = 0; k < kVirtualLanes; ++k) add_key(columns[k], k % 2);
        } else {
          for (size_t k = key; k < end; ++k) add_key(columns[k], k % 2);
        }
        key = end;
        if (first_key_ + i + end == overview_.parts[part_].end) end_part();
      }
    }
    while (part_ < last) end_part();
  }

 private:
  HWY_INLINE void add_key(const float* column, size_t odd) {
    const FloatTag tag;
    for (size_t r = 0; r < kRegisters; ++r) {
      const FloatVec power = hn::Load(tag, column + r * kLanes);
      sums_[odd][r] = hn::Add(sums_[odd][r], power);
      maxima_[odd][r] = hn::Max(maxima_[odd][r], power);
    }
  }

  HWY_INLINE void end_part() {
    const FloatTag tag;
    for (size_t r = 0; r < kRegisters; ++r) {
      const size_t place = part_ * kRowStride + row_ + r * kLanes;
      hn::StoreU(hn::Add(sums_[0][r], sums_[1][r]), tag, overview_.sums + place);
      hn::StoreU(hn::Max(maxima_[0][r], maxima_[1][r]), tag, overview_.maxima + place);
      for (size_t odd = 0; odd < 2; ++odd) sums_[odd][r] = maxima_[odd][r] = hn::Zero(tag);
    }
    ++part_;
  }

  const OverviewOfRows& overview_;
  size_t row_, first_key_, part_ = 0;
  FloatVec sums_[2][kRegisters] = {}, maxima_[2][kRegisters] = {};  // of even and odd keys of the part
};

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();
#endif
