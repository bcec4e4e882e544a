// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace clearhead::kernels {

// Which elements of a head are rotated together, for rotary_dim elements.
//   halves       element i with element i + rotary_dim / 2
//   interleaved  element 2 i with element 2 i + 1
enum class RotaryLayout { halves, interleaved };

// Rotates the first 2 count elements of a head, pair by pair, in place; the others stay as they are:
//
//   a' = a cos_i - b sin_i     b' = a sin_i + b cos_i
//
// each as fma(a, cos_i, -(b sin_i)) and fma(b, cos_i, a sin_i). Shapes: head [at least 2 count]; cosines, sines
// [count]. Error: at most 2^-23 (|a| + |b|), measured by rotary_test. Bits: the same on every SIMD target with fused
// multiply-add.
// Source: Su et al. 2021, RoFormer, section 3.2.2.
void rotate(std::span<float> head, std::span<const float> cosines, std::span<const float> sines, RotaryLayout layout);

}  // namespace clearhead::kernels
