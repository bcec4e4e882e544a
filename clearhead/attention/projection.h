// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "clearhead/attention/multi_head_attention.h"
#include "clearhead/capture/observer.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::attention {

// The three roles of the inputs, ready to attend; appended keys stand at the end of every sequence.
struct Projected {
  tensor::Tensor query;  // [batch, query_len, num_heads, head_dim]
  tensor::Tensor key;    // [batch, key_len + appended, num_kv_heads, head_dim]
  tensor::Tensor value;  // [batch, key_len + appended, num_kv_heads, value_dim]
};

// Q = x W_Q^T + b_Q, K and V likewise. Shows query, key and value.
// Throws: Error (usage) if sizes do not fit each other.
// Source: Vaswani et al. 2017, section 3.2.2.
Projected project_inputs(const AttentionConfig& config, const MultiHeadParameters& parameters,
                         const MultiHeadInput& input, capture::Observer* observer, size_t layer);

// What each head adds to the output: its slice of head_output through its slice of the output projection, without bias.
//
//   contribution_h = head_output_h W_O[:, h * value_dim : (h + 1) * value_dim]^T
//
// Shapes: head_output [batch, query_len, num_heads, value_dim]; result [batch, query_len, num_heads, d_model].
tensor::Tensor head_contributions(const tensor::Tensor& head_output, const linear::PackedLinear& output);

}  // namespace clearhead::attention
