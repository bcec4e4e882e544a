// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "clearhead/apps/cli/op/tensors.h"
#include "clearhead/attention/multi_head_attention.h"
#include "clearhead/attention/reference_multi_head.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::apps {

// One projection of the module, F32 or F64. No bias: has_bias is false.
struct ModuleProjection {
  tensor::Tensor weight;  // [out, in]
  tensor::Tensor bias;    // [out]
  bool has_bias = false;
};

// The parameters of the module, told apart.
struct ModuleParameters {
  ModuleProjection query, key, value, output;
  size_t appended = 0;            // bias_k and the zero of add_zero_attn
  tensor::Tensor appended_key;    // [appended, d_model]
  tensor::Tensor appended_value;  // [appended, d_model]
};

struct ModuleLayout {
  size_t d_model, key_width, value_width, num_heads;
  attention::Split split;
  bool add_zero = false;
};

// Reads in_proj_weight or q_, k_, v_proj_weight, in_proj_bias, bias_k, bias_v, out_proj.weight, out_proj.bias.
// Throws: Error (usage) naming what is missing, doubled or of a wrong shape.
ModuleParameters read_module_parameters(Inputs& inputs, const ModuleLayout& layout, tensor::DType real);

// The same as multi_head_attention and its reference take them.
attention::MultiHeadParameters pack_parameters(const ModuleParameters& parameters);
attention::ReferenceParameters reference_parameters(const ModuleParameters& parameters);

}  // namespace clearhead::apps
