// SPDX-License-Identifier: Apache-2.0
// What rows have seen of two key tiles becomes one. See attention/merge.h for what it promises.
#if defined(CLEARHEAD_KERNELS_MERGE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_KERNELS_MERGE_INL_H
#undef CLEARHEAD_KERNELS_MERGE_INL_H
#else
#define CLEARHEAD_KERNELS_MERGE_INL_H
#endif

#include <hwy/highway.h>
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "clearhead/kernels/softmax.h"
#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

constexpr float kNoReference = -std::numeric_limits<float>::infinity();  // of a row that has seen no key

// 2^exponent for an integer that is at most 0; below -126 it is 0.
HWY_INLINE float power_of_two(float exponent) {
  if (!(exponent >= -126.0f)) return 0.0f;
  return std::bit_cast<float>((127 + static_cast<int32_t>(exponent)) << 23);
}

// How much two summaries count in the summary of both.
struct MergeFactors {
  float reference, old, added;
};

HWY_INLINE MergeFactors merge_factors(float old_reference, float added_reference) {
  const float reference = std::max(old_reference, added_reference);
  return {reference, power_of_two(old_reference - reference), power_of_two(added_reference - reference)};
}

// a old + b added, as the elements of vectors are merged.
HWY_INLINE float merged(float a, float b, const MergeFactors& factors) {
  const hn::CappedTag<float, 1> one;
  const auto kept = hn::Mul(hn::Set(one, a), hn::Set(one, factors.old));
  return hn::GetLane(hn::MulAdd(hn::Set(one, b), hn::Set(one, factors.added), kept));
}

// output[i] = output[i] old + tile[i] added
HWY_INLINE void merge_output(float* HWY_RESTRICT output, const float* HWY_RESTRICT tile, size_t count,
                             const MergeFactors& factors) {
  const FloatTag tag;
  const FloatVec old = hn::Set(tag, factors.old), added = hn::Set(tag, factors.added);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const FloatVec kept = hn::Mul(hn::LoadU(tag, output + i), old);
    hn::StoreU(hn::MulAdd(hn::LoadU(tag, tile + i), added, kept), tag, output + i);
  }
  for (; i < count; ++i) output[i] = merged(output[i], tile[i], factors);
}

HWY_INLINE void merge_inline(RowSummary& row, float* output, const RowSummary& tile, const float* tile_output,
                             size_t count) {
  if (tile.reference == kNoReference) return;
  if (row.reference == kNoReference) {
    row = tile;
    std::copy_n(tile_output, count, output);
    return;
  }
  const MergeFactors factors = merge_factors(row.reference, tile.reference);
  merge_output(output, tile_output, count, factors);
  row = {factors.reference, merged(row.sum, tile.sum, factors), merged(row.rounded_sum, tile.rounded_sum, factors)};
}

// The end of a row: its sum and outputs over its sum. output may be source.
HWY_INLINE void finish_inline(RowSummary& row, const float* source, size_t count, float* output) {
  if (row.reference == kNoReference) {
    std::fill_n(output, count, 0.0f);
    return;
  }
  row.sum = canonical(row.sum);
  const FloatVec reciprocal = hn::Set(FloatTag(), 1.0f / row.divisor());
  map_elements(
      output, count, [&](FloatVec value) HWY_ATTR { return hn::Mul(value, reciprocal); }, source);
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();
#endif
