// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/model/parameters.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::model {

// Layer norm of every row.
// Shapes: input, output [..., d_model]; output may be input.
void norm_rows(const NormParameters& norm, float epsilon, const tensor::Tensor& input, tensor::Tensor& output);

// Layer norm of every row of input + residual; the sum is rounded to float.
// Shapes: input, residual, output [..., d_model]; output may be either.
void add_norm_rows(const NormParameters& norm, float epsilon, const tensor::Tensor& input,
                   const tensor::Tensor& residual, tensor::Tensor& output);

}  // namespace clearhead::model
