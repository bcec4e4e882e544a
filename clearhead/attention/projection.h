// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "clearhead/attention/multi_head_attention.h"
#include "clearhead/capture/watch.h"

namespace clearhead::attention {

// The three roles of the inputs, ready to attend; appended keys stand at the end of every sequence.
struct Projected {
  size_t key_len;                // with appended keys
  std::span<const float> query;  // [batch, query_len, num_heads, head_dim]
  std::span<const float> key;    // [batch, key_len, num_kv_heads, head_dim]
  std::span<const float> value;  // [batch, key_len, num_kv_heads, value_dim]
};

// Q = x W_Q^T + b_Q, K and V likewise, in the workspace's room; then every head's query and key is normed and turned,
// where there are gains and turns. Shows query, key and value as projected, rotated_query and rotated_key. Throws:
// Error (usage) if sizes do not fit each other. Source: Vaswani et al. 2017, section 3.2.2.
Projected project_inputs(const AttentionConfig& config, const MultiHeadParameters& parameters,
                         const MultiHeadInput& input, MultiHeadWorkspace& workspace, const capture::Watch& watch);

// What each head adds to the output: its slice of head_output through its slice of the output projection, without bias.
//
//   contribution_h = head_output_h W_O[:, h * value_dim : (h + 1) * value_dim]^T
//
// Shapes: head_output [rows, heads, value_dim]; contributions [rows, heads, d_model].
void head_contributions(std::span<const float> head_output, size_t heads, const linear::PackedLinear& output,
                        std::span<float> contributions);

}  // namespace clearhead::attention
