// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/widen.h"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/kernels/widen.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/half_floats-inl.h"
#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

// output = map(bits), by vectors in the tail as well.
template <class Map>
HWY_INLINE void widen(std::span<const uint16_t> bits, float* output, Map map) {
  const FloatTag tag;
  const NarrowTag narrow;
  size_t i = 0;
  for (; i + kLanes <= bits.size(); i += kLanes) {
    hn::StoreU(map(hn::LoadU(narrow, bits.data() + i)), tag, output + i);
  }
  if (i == bits.size()) return;
  alignas(64) uint16_t rest[kVirtualLanes] = {};
  alignas(64) float found[kVirtualLanes];
  std::copy(bits.begin() + static_cast<std::ptrdiff_t>(i), bits.end(), rest);
  hn::Store(map(hn::Load(narrow, rest)), tag, found);
  std::copy_n(found, bits.size() - i, output + i);
}

void widen_halves(std::span<const uint16_t> bits, float* output) {
  widen(bits, output, [](NarrowVec half) HWY_ATTR { return float_of_half(half); });
}

void widen_bfloat16(std::span<const uint16_t> bits, float* output) {
  widen(bits, output, [](NarrowVec upper) HWY_ATTR { return float_of_bfloat16(upper); });
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
