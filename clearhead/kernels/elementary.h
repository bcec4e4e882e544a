// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace clearhead::kernels {

// Elementary functions by the same operations on every SIMD target, so that their bits do not depend on the machine
// as long as it has fused multiply-add. Every error is measured by elementary_test, against the same function in
// double. Where a result is NaN its bits are 0x7fc00000.
//
// Shapes: input, output [count]; output may be input.

// 2^x. exp2(0) is exactly 1; below -126 and at -inf exactly 0; +inf from 128 on; NaN stays NaN.
// Error: at most 3 ULP (2.4e-7 relative).
void exp2(std::span<const float> input, std::span<float> output);

// log2 x. log2(1) is exactly 0; -inf at 0 of either sign, NaN below; +inf and NaN stay what they are; subnormals count.
// Error: at most 2 ULP.
void log2(std::span<const float> input, std::span<float> output);

// tanh x, odd, never beyond 1 or -1; NaN stays NaN.
// Error: at most 3 ULP.
void tanh(std::span<const float> input, std::span<float> output);

// erf x = 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x, odd, never beyond 1 or -1; NaN stays NaN.
// Error: at most 2 ULP.
void erf(std::span<const float> input, std::span<float> output);

// One element, the same bits.
float exp2(float x);
float log2(float x);
float tanh(float x);
float erf(float x);

}  // namespace clearhead::kernels
