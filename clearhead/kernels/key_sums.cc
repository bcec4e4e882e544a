// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/key_sums.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/kernels/key_sums.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/elementary-inl.h"
#include "clearhead/kernels/softmax-inl.h"
#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

void add_to_key_sums(const float* scores, size_t stride, std::span<const RowSummary> rows, std::span<double> sums) {
  const FloatTag tag;
  const FloatVec unseen = hn::Set(tag, -kInfinity);
  float inverses[kSummedRows];
  for (size_t first = 0; first < rows.size(); first += kSummedRows) {
    const size_t count = std::min(kSummedRows, rows.size() - first);
    for (size_t i = 0; i < count; ++i) inverses[i] = 1.0f / rows[first + i].sum;
    for (size_t key = 0; key < sums.size(); key += kLanes) {
      FloatVec sum = hn::Zero(tag);
      for (size_t i = 0; i < count; ++i) {
        const FloatVec score = hn::LoadU(tag, scores + (first + i) * stride + key);
        const FloatVec shifted = hn::Sub(score, hn::Set(tag, rows[first + i].reference));
        const FloatVec weight = hn::Mul(exp2_below_127(tag, shifted), hn::Set(tag, inverses[i]));
        sum = hn::Add(sum, hn::IfThenZeroElse(hn::Eq(score, unseen), weight));
      }
      alignas(64) float lanes[kVirtualLanes];
      hn::Store(sum, tag, lanes);
      const size_t end = std::min(kLanes, sums.size() - key);
      for (size_t i = 0; i < end; ++i) sums[key + i] += static_cast<double>(lanes[i]);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::kernels {

HWY_EXPORT(add_to_key_sums);

void add_to_key_sums(const float* scores, size_t stride, std::span<const RowSummary> rows, std::span<double> sums) {
  HWY_DYNAMIC_DISPATCH(add_to_key_sums)(scores, stride, rows, sums);
}

}  // namespace clearhead::kernels
#endif
