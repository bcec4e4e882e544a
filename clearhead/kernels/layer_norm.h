// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace clearhead::kernels {

// What a layer norm learned.
struct LayerNormParameters {
  std::span<const float> gain;  // [d_model]
  std::span<const float> bias;  // [d_model]
  float epsilon;
};

// Shifts a vector to mean 0, scales it to variance 1, then applies learned gains and biases:
//
//   y_i = (x_i - mean) / sqrt(variance + epsilon) * gain_i + bias_i,   variance = mean((x - mean)^2)
//
// Shapes: input, output [d_model]; output may be input. d_model >= 1.
// Error: against the same formula in double, at most
//
//   2^-24 (|gain_i| / sqrt(variance + epsilon) ((d_model / 16 + 6) mean(|x|) + (d_model / 32 + 9) |x_i - mean|) +
//   |y_i|)
//
// as each of the 16 partial sums takes d_model / 16 roundings. Bits: the same on every SIMD target with fused
// multiply-add, because mean and variance are summed over 16 virtual lanes, one after the other. Source: Ba, Kiros and
// Hinton 2016, Layer Normalization.
void layer_norm(std::span<const float> input, const LayerNormParameters& parameters, std::span<float> output);

// layer_norm(input + residual): the bits of the two steps one after the other.
// Shapes: input, residual, output [d_model]; output may be either.
void add_layer_norm(std::span<const float> input, std::span<const float> residual,
                    const LayerNormParameters& parameters, std::span<float> output);

}  // namespace clearhead::kernels
