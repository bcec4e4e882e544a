// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/widen.h"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/kernels/widen.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

using Bits = hn::RebindToUnsigned<FloatTag>;
using BitsVec = hn::Vec<Bits>;

// output = map(bits), by vectors in the tail as well.
template <class Map>
HWY_INLINE void widen(std::span<const uint16_t> bits, float* output, Map map) {
  const FloatTag tag;
  const Bits wide;
  const hn::Rebind<uint16_t, FloatTag> narrow;
  size_t i = 0;
  for (; i + kLanes <= bits.size(); i += kLanes) {
    hn::StoreU(map(hn::PromoteTo(wide, hn::LoadU(narrow, bits.data() + i))), tag, output + i);
  }
  if (i == bits.size()) return;
  alignas(64) uint16_t rest[kVirtualLanes] = {};
  alignas(64) float found[kVirtualLanes];
  std::copy(bits.begin() + static_cast<std::ptrdiff_t>(i), bits.end(), rest);
  hn::Store(map(hn::PromoteTo(wide, hn::Load(narrow, rest))), tag, found);
  std::copy_n(found, bits.size() - i, output + i);
}

// The exponent moves from one bias to the other; twice where it is all ones. Subnormals are whole multiples of 2^-24.
HWY_INLINE FloatVec float_of_half(BitsVec half) {
  const FloatTag tag;
  const Bits wide;
  const hn::RebindToSigned<FloatTag> integers;
  const BitsVec magnitude = hn::And(half, hn::Set(wide, 0x7fffu)), bias = hn::Set(wide, 112u << 23);
  const auto least = hn::Set(integers, 0x0400), infinity = hn::Set(integers, 0x7bff);
  const auto whole = hn::BitCast(integers, magnitude);
  const FloatVec number = hn::BitCast(tag, hn::Add(hn::ShiftLeft<13>(magnitude), bias));
  const FloatVec special = hn::BitCast(tag, hn::Add(hn::BitCast(wide, number), bias));
  const FloatVec small = hn::Mul(hn::ConvertTo(tag, whole), hn::Set(tag, 0x1p-24f));
  FloatVec result = hn::IfThenElse(hn::RebindMask(tag, hn::Gt(whole, infinity)), special, number);
  result = hn::IfThenElse(hn::RebindMask(tag, hn::Gt(least, whole)), small, result);
  const BitsVec sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(wide, 0x8000u)));
  return hn::Or(result, hn::BitCast(tag, sign));
}

void widen_halves(std::span<const uint16_t> bits, float* output) {
  widen(bits, output, [](BitsVec half) HWY_ATTR { return float_of_half(half); });
}

void widen_bfloat16(std::span<const uint16_t> bits, float* output) {
  widen(bits, output, [](BitsVec upper) HWY_ATTR { return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(upper)); });
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::kernels {

HWY_EXPORT(widen_halves);
HWY_EXPORT(widen_bfloat16);

void widen_halves(std::span<const uint16_t> bits, float* output) { HWY_DYNAMIC_DISPATCH(widen_halves)(bits, output); }

void widen_bfloat16(std::span<const uint16_t> bits, float* output) {
  HWY_DYNAMIC_DISPATCH(widen_bfloat16)(bits, output);
}

}  // namespace clearhead::kernels
#endif
