// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/elementary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/kernels/elementary.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/elementary-inl.h"
#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

void exp2_elements(const float* input, size_t count, float* output) {
  map_elements(
      output, count, [](FloatVec x) HWY_ATTR { return exp2(FloatTag(), x); }, input);
}

void log2_elements(const float* input, size_t count, float* output) {
  map_elements(
      output, count, [](FloatVec x) HWY_ATTR { return log2(FloatTag(), x); }, input);
}

void tanh_elements(const float* input, size_t count, float* output) {
  map_elements(
      output, count, [](FloatVec x) HWY_ATTR { return tanh(FloatTag(), x); }, input);
}

void erf_elements(const float* input, size_t count, float* output) {
  map_elements(
      output, count, [](FloatVec x) HWY_ATTR { return erf(FloatTag(), x); }, input);
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::kernels {

HWY_EXPORT(exp2_elements);
HWY_EXPORT(log2_elements);
HWY_EXPORT(tanh_elements);
HWY_EXPORT(erf_elements);

void exp2(std::span<const float> input, std::span<float> output) {
  HWY_DYNAMIC_DISPATCH(exp2_elements)(input.data(), input.size(), output.data());
}

void log2(std::span<const float> input, std::span<float> output) {
  HWY_DYNAMIC_DISPATCH(log2_elements)(input.data(), input.size(), output.data());
}

void tanh(std::span<const float> input, std::span<float> output) {
  HWY_DYNAMIC_DISPATCH(tanh_elements)(input.data(), input.size(), output.data());
}

void erf(std::span<const float> input, std::span<float> output) {
  HWY_DYNAMIC_DISPATCH(erf_elements)(input.data(), input.size(), output.data());
}

float exp2(float x) {
  exp2(std::span(&x, 1), std::span(&x, 1));
  return x;
}

float log2(float x) {
  log2(std::span(&x, 1), std::span(&x, 1));
  return x;
}

float tanh(float x) {
  tanh(std::span(&x, 1), std::span(&x, 1));
  return x;
}

float erf(float x) {
  erf(std::span(&x, 1), std::span(&x, 1));
  return x;
}

}  // namespace clearhead::kernels
#endif
