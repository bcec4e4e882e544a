// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace clearhead::kernels {

// The functions between the two products of a feed-forward block, element by element. Bits: the same on every SIMD
// target with fused multiply-add; NaN stays NaN, stored as 0x7fc00000. At -inf the formulas of the first three have no
// value (infinity times 0) and the result is NaN. Errors are measured by activation_test over -100..100, against
// double.
//
// Shapes: input, output [count]; output may be input.

// x Phi(x) = x / 2 (1 + erf(x / sqrt 2)).
// Error: at most 2e-7 |x|, and at most 4e-6 of the result down to x = -8.
// Source: Hendrycks and Gimpel 2016, Gaussian Error Linear Units.
void gelu(std::span<const float> input, std::span<float> output);

// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))): the approximation that GPT-2 was trained with.
// Error: at most 2e-7 |x|, and at most 4e-6 of the result down to x = -5.
void gelu_tanh(std::span<const float> input, std::span<float> output);

// x / (1 + e^-x).
// Error: at most 2e-7 |x|, and at most 4e-6 of the result down to x = -60.
// Source: Ramachandran, Zoph and Le 2017, Searching for Activation Functions.
void silu(std::span<const float> input, std::span<float> output);

// max(x, 0).
void relu(std::span<const float> input, std::span<float> output);

}  // namespace clearhead::kernels
