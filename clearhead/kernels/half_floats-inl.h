// SPDX-License-Identifier: Apache-2.0
// Half precision and bfloat16 as vectors of floats, exactly.
#if defined(CLEARHEAD_KERNELS_HALF_FLOATS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_KERNELS_HALF_FLOATS_INL_H
#undef CLEARHEAD_KERNELS_HALF_FLOATS_INL_H
#else
#define CLEARHEAD_KERNELS_HALF_FLOATS_INL_H
#endif

#include <hwy/highway.h>
#include <cstdint>

#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

using NarrowTag = hn::Rebind<uint16_t, FloatTag>;
using NarrowVec = hn::Vec<NarrowTag>;

HWY_INLINE FloatVec float_of_bfloat16(NarrowVec bits) {
  return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<FloatTag>(), bits)));
}

// The exponent moves from one bias to the other; twice where it is all ones. Subnormals are whole multiples of 2^-24.
HWY_INLINE FloatVec float_of_half(NarrowVec bits) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return hn::PromoteTo(FloatTag(), hn::BitCast(hn::Rebind<hwy::float16_t, FloatTag>(), bits));
#else
  const FloatTag tag;
  const hn::RebindToUnsigned<FloatTag> wide;
  const hn::RebindToSigned<FloatTag> integers;
  const auto half = hn::PromoteTo(wide, bits);
  const auto magnitude = hn::And(half, hn::Set(wide, 0x7fffu)), bias = hn::Set(wide, 112u << 23);
  const auto least = hn::Set(integers, 0x0400), infinity = hn::Set(integers, 0x7bff);
  const auto whole = hn::BitCast(integers, magnitude);
  const FloatVec number = hn::BitCast(tag, hn::Add(hn::ShiftLeft<13>(magnitude), bias));
  const FloatVec special = hn::BitCast(tag, hn::Add(hn::BitCast(wide, number), bias));
  const FloatVec small = hn::Mul(hn::ConvertTo(tag, whole), hn::Set(tag, 0x1p-24f));
  FloatVec result = hn::IfThenElse(hn::RebindMask(tag, hn::Gt(whole, infinity)), special, number);
  result = hn::IfThenElse(hn::RebindMask(tag, hn::Gt(least, whole)), small, result);
  const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(wide, 0x8000u)));
  return hn::Or(result, hn::BitCast(tag, sign));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();
#endif
