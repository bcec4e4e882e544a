// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/layer_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/kernels/layer_norm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

void layer_norm(std::span<const float> input, const LayerNormParameters& parameters, std::span<float> output) {
  const size_t d_model = input.size();
  const float count = static_cast<float>(d_model);
  VirtualLanes sums;
  for_each_group(input.data(), d_model, 0.0f, [&](size_t r, FloatVec x) HWY_ATTR { sums.add(r, x); });
  const float mean = sums.fold() / count;

  const FloatVec means = hn::Set(FloatTag(), mean);
  VirtualLanes squares;
  for_each_group(input.data(), d_model, mean, [&](size_t r, FloatVec x) HWY_ATTR {
    const FloatVec centred = hn::Sub(x, means);
    squares.multiply_add(r, centred, centred);
  });
  const float scale = 1.0f / std::sqrt(squares.fold() / count + parameters.epsilon);

  const FloatVec scales = hn::Set(FloatTag(), scale);
  const auto normalize = [&](FloatVec x, FloatVec gain, FloatVec bias)
                             HWY_ATTR { return hn::MulAdd(hn::Mul(hn::Sub(x, means), scales), gain, bias); };
  map_elements(output.data(), d_model, normalize, input.data(), parameters.gain.data(), parameters.bias.data());
}

void add_layer_norm(std::span<const float> input, std::span<const float> residual,
                    const LayerNormParameters& parameters, std::span<float> output) {
  const auto add = [](FloatVec a, FloatVec b) HWY_ATTR { return hn::Add(a, b); };
  map_elements(output.data(), input.size(), add, input.data(), residual.data());
  HWY_NAMESPACE::layer_norm(output, parameters, output);
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::kernels {

HWY_EXPORT(layer_norm);
HWY_EXPORT(add_layer_norm);

void layer_norm(std::span<const float> input, const LayerNormParameters& parameters, std::span<float> output) {
  HWY_DYNAMIC_DISPATCH(layer_norm)(input, parameters, output);
}

void add_layer_norm(std::span<const float> input, std::span<const float> residual,
                    const LayerNormParameters& parameters, std::span<float> output) {
  HWY_DYNAMIC_DISPATCH(add_layer_norm)(input, residual, parameters, output);
}

}  // namespace clearhead::kernels
#endif
