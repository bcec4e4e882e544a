// SPDX-License-Identifier: Apache-2.0
// Rows become columns, 16 rows at a time.
#if defined(CLEARHEAD_KERNELS_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_KERNELS_TRANSPOSE_INL_H
#undef CLEARHEAD_KERNELS_TRANSPOSE_INL_H
#else
#define CLEARHEAD_KERNELS_TRANSPOSE_INL_H
#endif

#include <hwy/highway.h>
#include <cstddef>

#include "clearhead/kernels/tile.h"
#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
// Rows of lanes / 4 blocks: block b is 4 floats of row 4 b.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const float* x, size_t stride) {
  if constexpr (hn::MaxLanes(d) <= 4) {
    return hn::LoadU(d, x);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_blocks(half, x + hn::MaxLanes(d) / 2 * stride, stride), load_blocks(half, x, stride));
  }
}

#endif

// packed[k * 16 + j] = x[j * stride + k] for 4 k and 16 j, by transposing blocks of 4 x 4.
HWY_INLINE void transpose_4_by_16(const float* x, size_t stride, float* packed) {
#if HWY_TARGET == HWY_SCALAR
  for (size_t k = 0; k < 4; ++k) {
    for (size_t j = 0; j < kPanelWidth; ++j) packed[k * kPanelWidth + j] = x[j * stride + k];
  }
#else
  const FloatTag tag;
  for (size_t first = 0; first < kPanelWidth; first += kLanes, x += kLanes * stride, packed += kLanes) {
    const FloatVec a = load_blocks(tag, x, stride), b = load_blocks(tag, x + stride, stride);
    const FloatVec c = load_blocks(tag, x + 2 * stride, stride), d = load_blocks(tag, x + 3 * stride, stride);
    const FloatVec low_even = hn::InterleaveLower(tag, a, c), low_odd = hn::InterleaveLower(tag, b, d);
    const FloatVec high_even = hn::InterleaveUpper(tag, a, c), high_odd = hn::InterleaveUpper(tag, b, d);
    hn::StoreU(hn::InterleaveLower(tag, low_even, low_odd), tag, packed);
    hn::StoreU(hn::InterleaveUpper(tag, low_even, low_odd), tag, packed + kPanelWidth);
    hn::StoreU(hn::InterleaveLower(tag, high_even, high_odd), tag, packed + 2 * kPanelWidth);
    hn::StoreU(hn::InterleaveUpper(tag, high_even, high_odd), tag, packed + 3 * kPanelWidth);
  }
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();
#endif
