// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "clearhead/linear/packed_linear.h"

namespace clearhead::linear {

// The functions of kernels/activation.h.
enum class Activation { none, gelu, gelu_tanh, silu, relu };

// What products are computed in.
//   single    float, as below
//   bfloat16  input and parameters rounded to bfloat16, sums in float (kernels::pair_product): about twice as fast
//             where the machine has AVX512_BF16, slow elsewhere, the same bits
enum class Compute { single, bfloat16 };

// What happens to an output before it is stored.
struct Epilogue {
  Activation activation = Activation::none;
  const float* factor = nullptr;    // [rows, out], multiplied with the activation; may be output
  const float* residual = nullptr;  // [rows, out], added after the activation; may be output
};

// y = activation(x W^T + b) * factor + residual, on all threads:
//
//   dot    = fma(x_n, w_n, ... fma(x_1, w_1, fma(x_0, w_0, +0)))      the inner dimension in order
//   y      = activation(dot + b) * factor + residual                 each step rounded once, absent ones left out
//
// Shapes: input [rows, in], output [rows, out]; output must not overlap input. rows may be 0.
// Error of dot: at most (in + 1) 2^-24 sum |x_k w_k|.
// In bfloat16 dot is that of kernels::pair_product, of rounded numbers.
// Bits: a row's do not depend on the other rows, on the number of threads, or on the SIMD target as long as it has
// fused multiply-add. NaN is stored as 0x7fc00000.
void linear(std::span<const float> input, size_t rows, const PackedLinear& parameters, std::span<float> output,
            const Epilogue& epilogue = {}, Compute compute = Compute::single);

// One of several maps of the same input.
struct LinearPart {
  const PackedLinear* parameters;
  std::span<float> output;  // [rows, out]
  Epilogue epilogue = {};
};

// Several maps of the same input, such as query, key and value, as one product: the threads meet once. The bits of one
// product each.
void linear(std::span<const float> input, size_t rows, std::span<const LinearPart> parts,
            Compute compute = Compute::single);

}  // namespace clearhead::linear
