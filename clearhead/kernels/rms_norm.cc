// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/rms_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/kernels/rms_norm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

void rms_norm(std::span<const float> input, std::span<const float> gain, float epsilon, std::span<float> output) {
  const size_t d_model = input.size();
  VirtualLanes squares;  // [16] partial sums, lane i holds elements i, i + 16, ...
  for_each_group(input.data(), d_model, 0.0f, [&](size_t r, FloatVec x) HWY_ATTR { squares.multiply_add(r, x, x); });
  const float scale = 1.0f / std::sqrt(squares.fold() / static_cast<float>(d_model) + epsilon);
  const FloatVec scales = hn::Set(FloatTag(), scale);
  const auto normalize = [&](FloatVec x, FloatVec gains) HWY_ATTR { return hn::Mul(hn::Mul(x, scales), gains); };
  map_elements(output.data(), d_model, normalize, input.data(), gain.data());
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::kernels {

HWY_EXPORT(rms_norm);

void rms_norm(std::span<const float> input, std::span<const float> gain, float epsilon, std::span<float> output) {
  HWY_DYNAMIC_DISPATCH(rms_norm)(input, gain, epsilon, output);
}

}  // namespace clearhead::kernels
#endif
