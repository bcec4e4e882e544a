// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/kernels/activation.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/elementary-inl.h"
#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

void gelu_elements(const float* input, size_t count, float* output) {
  map_elements(
      output, count, [](FloatVec x) HWY_ATTR { return gelu(FloatTag(), x); }, input);
}

void gelu_tanh_elements(const float* input, size_t count, float* output) {
  map_elements(
      output, count, [](FloatVec x) HWY_ATTR { return gelu_tanh(FloatTag(), x); }, input);
}

void silu_elements(const float* input, size_t count, float* output) {
  map_elements(
      output, count, [](FloatVec x) HWY_ATTR { return silu(FloatTag(), x); }, input);
}

void relu_elements(const float* input, size_t count, float* output) {
  map_elements(
      output, count, [](FloatVec x) HWY_ATTR { return relu(FloatTag(), x); }, input);
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::kernels {

HWY_EXPORT(gelu_elements);
HWY_EXPORT(gelu_tanh_elements);
HWY_EXPORT(silu_elements);
HWY_EXPORT(relu_elements);

void gelu(std::span<const float> input, std::span<float> output) {
  HWY_DYNAMIC_DISPATCH(gelu_elements)(input.data(), input.size(), output.data());
}

void gelu_tanh(std::span<const float> input, std::span<float> output) {
  HWY_DYNAMIC_DISPATCH(gelu_tanh_elements)(input.data(), input.size(), output.data());
}

void silu(std::span<const float> input, std::span<float> output) {
  HWY_DYNAMIC_DISPATCH(silu_elements)(input.data(), input.size(), output.data());
}

void relu(std::span<const float> input, std::span<float> output) {
  HWY_DYNAMIC_DISPATCH(relu_elements)(input.data(), input.size(), output.data());
}

}  // namespace clearhead::kernels
#endif
