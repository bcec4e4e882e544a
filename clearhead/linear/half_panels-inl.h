// SPDX-License-Identifier: Apache-2.0
// Panels of half precision and bfloat16 as vectors of floats, for products. See half_panels.h for what stands in them.
#if defined(CLEARHEAD_LINEAR_HALF_PANELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_LINEAR_HALF_PANELS_INL_H
#undef CLEARHEAD_LINEAR_HALF_PANELS_INL_H
#else
#define CLEARHEAD_LINEAR_HALF_PANELS_INL_H
#endif

#include <hwy/highway.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "clearhead/kernels/bfloat16_tile.h"
#include "clearhead/kernels/half_floats-inl.h"
#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::linear {
namespace HWY_NAMESPACE {
namespace halves {
namespace hn = hwy::HWY_NAMESPACE;
namespace simd = kernels::HWY_NAMESPACE;

constexpr size_t kLanes = simd::kLanes, kRegisters = simd::kRegisters;
using FloatTag = simd::FloatTag;
using FloatVec = simd::FloatVec;

template <bool kBFloat16>
HWY_INLINE FloatVec load(const uint16_t* numbers) {
  const auto bits = hn::LoadU(simd::NarrowTag(), numbers);
  if constexpr (kBFloat16) return simd::float_of_bfloat16(bits);
  return simd::float_of_half(bits);
}

// The products of one row with kPanels panels side by side: the sums of kernels::tile_product, the inputs in order.
template <bool kBFloat16, size_t kPanels>
HWY_INLINE void dot_panels(const float* input, const uint16_t* panels, size_t depth, float* output) {
  FloatVec sums[kPanels * kRegisters];
  for (FloatVec& sum : sums) sum = hn::Zero(FloatTag());
  for (size_t k = 0; k < depth; ++k) {
    const FloatVec element = hn::Set(FloatTag(), input[k]);
    for (size_t i = 0; i < kPanels * kRegisters; ++i) {
      const uint16_t* numbers = panels + (i / kRegisters * depth + k) * 16 + i % kRegisters * kLanes;
      sums[i] = hn::MulAdd(element, load<kBFloat16>(numbers), sums[i]);
    }
  }
  for (size_t i = 0; i < kPanels * kRegisters; ++i) hn::StoreU(sums[i], FloatTag(), output + i * kLanes);
}

template <bool kBFloat16>
HWY_INLINE void dot_any(const float* input, const uint16_t* panels, size_t count, size_t depth, float* output) {
  constexpr size_t kTogether = kRegisters <= 2 ? 4 : 1;
  size_t i = 0;
  for (; i + kTogether <= count; i += kTogether) {
    dot_panels<kBFloat16, kTogether>(input, panels + i * depth * 16, depth, output + i * 16);
  }
  for (; i < count; ++i) dot_panels<kBFloat16, 1>(input, panels + i * depth * 16, depth, output + i * 16);
}

// Shapes: input [depth], panels [count, depth, 16], output [count, 16].
HWY_INLINE void dot(bool bfloat16, const float* input, const uint16_t* panels, size_t count, size_t depth,
                    float* output) {
  bfloat16 ? dot_any<true>(input, panels, count, depth, output) : dot_any<false>(input, panels, count, depth, output);
}

// Shapes: numbers [count], a multiple of 16.
template <bool kBFloat16>
HWY_INLINE void unpack_any(const uint16_t* numbers, size_t count, float* floats) {
  for (size_t i = 0; i < count; i += kLanes) hn::StoreU(load<kBFloat16>(numbers + i), FloatTag(), floats + i);
}

HWY_INLINE void unpack(bool bfloat16, const uint16_t* numbers, size_t count, float* floats) {
  bfloat16 ? unpack_any<true>(numbers, count, floats) : unpack_any<false>(numbers, count, floats);
}

// Panels of bfloat16 as kernels::pair_product reads them. Shapes: numbers [depth, 16], pairs [pair_count(depth), 16].
HWY_INLINE void zip(const uint16_t* numbers, size_t depth, kernels::Pair* pairs) {
  const hn::RebindToUnsigned<FloatTag> wide;
  const auto load = [&](const uint16_t* at) HWY_ATTR { return hn::PromoteTo(wide, hn::LoadU(simd::NarrowTag(), at)); };
  for (size_t k = 0; k < depth; k += 2, numbers += 32, pairs += 16) {
    for (size_t i = 0; i < 16; i += kLanes) {
      const auto second = k + 1 < depth ? hn::ShiftLeft<16>(load(numbers + 16 + i)) : hn::Zero(wide);
      hn::StoreU(hn::Or(load(numbers + i), second), wide, pairs + i);
    }
  }
}

}  // namespace halves
}  // namespace HWY_NAMESPACE
}  // namespace clearhead::linear
HWY_AFTER_NAMESPACE();

#endif
