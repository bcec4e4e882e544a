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
    size_t part = overview_.first_parts[tile];
    const size_t last = overview_.first_parts[tile + 1];
    Pool even, odd;
    const auto end_part = [&] {
      even.add(odd);
      even.store(overview_.sums + part * kRowStride + row_, overview_.maxima + part * kRowStride + row_);
      even = odd = Pool();
      ++part;
    };
    while (part < last && overview_.parts[part].end <= first_key_) end_part();
    for (size_t i = 0; i < count && part < last; i += kVirtualLanes) {
      alignas(64) float columns[kVirtualLanes][kVirtualLanes];  // [key, row]
      for (size_t k = 0; k < kVirtualLanes; k += 4) transpose_4_by_16(powers + i + k, kScoreStride, columns[k]);
      for (size_t key = 0; key < kVirtualLanes && part < last;) {
        const size_t end = std::min(kVirtualLanes, overview_.parts[part].end - first_key_ - i);
        if (key % 2 == 1) odd.add(columns[key++]);
        for (; key + 2 <= end; key += 2) {
          even.add(columns[key]);
          odd.add(columns[key + 1]);
        }
        if (key < end) even.add(columns[key++]);
        if (first_key_ + i + end == overview_.parts[part].end) end_part();
      }
    }
    while (part < last) end_part();
  }

 private:
  // Of 16 rows, over some keys.
  struct Pool {
    FloatVec sums[kRegisters], maxima[kRegisters];

    Pool() {
      for (size_t r = 0; r < kRegisters; ++r) sums[r] = maxima[r] = hn::Zero(FloatTag());
    }
    HWY_INLINE void add(const float* column) {
      for (size_t r = 0; r < kRegisters; ++r) {
        const FloatVec power = hn::Load(FloatTag(), column + r * kLanes);
        sums[r] = hn::Add(sums[r], power);
        maxima[r] = hn::Max(maxima[r], power);
      }
    }
    HWY_INLINE void add(const Pool& other) {
      for (size_t r = 0; r < kRegisters; ++r) {
        sums[r] = hn::Add(sums[r], other.sums[r]);
        maxima[r] = hn::Max(maxima[r], other.maxima[r]);
      }
    }
    HWY_INLINE void store(float* to_sums, float* to_maxima) const {
      for (size_t r = 0; r < kRegisters; ++r) {
        hn::StoreU(sums[r], FloatTag(), to_sums + r * kLanes);
        hn::StoreU(maxima[r], FloatTag(), to_maxima + r * kLanes);
      }
    }
  };

  const OverviewOfRows& overview_;
  size_t row_, first_key_;
};

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();
#endif
