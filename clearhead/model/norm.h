// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "clearhead/model/parameters.h"

namespace clearhead::model {

// The norm of every row: a layer norm, or an RMS norm where there is no bias.
// Shapes: input, output [rows, d_model]; output may be input.
void norm_rows(const NormParameters& norm, float epsilon, std::span<const float> input, std::span<float> output);

// The norm of every row of input + residual; the sum is rounded to float.
// Shapes: input, residual, output [rows, d_model]; output may be either.
void add_norm_rows(const NormParameters& norm, float epsilon, std::span<const float> input,
                   std::span<const float> residual, std::span<float> output);

// sum += addend, element by element. Shapes: both [count].
void add_rows(std::span<const float> addend, std::span<float> sum);

// product *= factor, element by element. Shapes: both [count].
void multiply_rows(std::span<const float> factor, std::span<float> product);

}  // namespace clearhead::model
