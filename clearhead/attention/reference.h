// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "clearhead/attention/config.h"
#include "clearhead/attention/mask.h"
#include "clearhead/attention/sequence.h"

namespace clearhead::attention {

// What the reference reads, in double; shapes as in AttentionInput.
struct ReferenceInput {
  size_t batch = 1, query_len = 0, key_len = 0;
  std::span<const double> query;             // [batch, query_len, num_heads, head_dim]
  std::span<const double> key;               // [batch, key_len, num_kv_heads, head_dim]
  std::span<const double> value;             // [batch, key_len, num_kv_heads, value_dim]
  Mask mask;                                 // over the axes query_len and key_len, whatever sequences stand in them
  std::span<const Sequence> sequences = {};  // none: every row of the batch is one, all of it
};

struct ReferenceOutput {
  std::vector<double> raw_scores;     // [batch, num_heads, query_len, key_len]; 0 outside of sequences
  std::vector<double> scores;         // [batch, num_heads, query_len, key_len]; -infinity where not seen
  std::vector<double> row_reference;  // [batch, num_heads, query_len]; of the scores times log2 e
  std::vector<double> row_sum;        // [batch, num_heads, query_len]
  std::vector<double> weights;        // [batch, num_heads, query_len, key_len]
  std::vector<double> head_output;    // [batch, query_len, num_heads, value_dim]
};

// Attention by plain loops in double: the definition that exact_attention is compared with.
//
//   s_ij as AttentionConfig has it, over the keys that i may see     p_ij = exp(s_ij) / (sum_j exp(s_ij) + exp(sink))
//   o_i = sum_j p_ij v_j
//
// Unseen keys and values are not read. A config's scale of its own is a float; without one it is 1 / sqrt(head_dim) in
// double.
// Throws: Error (usage) if a span does not have the size of its shape.
// Source: Vaswani et al. 2017, Attention Is All You Need, equation 1.
ReferenceOutput reference_attention(const AttentionConfig& config, const ReferenceInput& input);

}  // namespace clearhead::attention
