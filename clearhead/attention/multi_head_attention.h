// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "clearhead/attention/config.h"
#include "clearhead/attention/exact.h"
#include "clearhead/attention/float_room.h"
#include "clearhead/attention/fused.h"
#include "clearhead/attention/key_value_cache.h"
#include "clearhead/attention/mask.h"
#include "clearhead/capture/watch.h"
#include "clearhead/kernels/rotary.h"
#include "clearhead/linear/linear.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::attention {

// Where heads come from.
//   projection  project the whole vector, then cut the projection into heads (Vaswani et al. 2017; the standard)
//   input       cut the input vector into heads, then project each part by its own square matrix: the simplified
//               telling, the special case of block-diagonal matrices
enum class Split { projection, input };

// What the layer has learned.
struct MultiHeadParameters {
  linear::PackedLinear query;   // [num_heads * head_dim, d_model]
  linear::PackedLinear key;     // [num_kv_heads * head_dim, d_model]
  linear::PackedLinear value;   // [num_kv_heads * value_dim, d_model]
  linear::PackedLinear output;  // [d_model, num_heads * value_dim]
  // Learned keys and values that stand behind those of every sequence, after projection; none: left as they are.
  tensor::Tensor appended_key = {};    // [appended, num_kv_heads * head_dim]
  tensor::Tensor appended_value = {};  // [appended, num_kv_heads * value_dim]
  // Gains of an RMS norm of every head's query and of every head's key, before they are turned; none, or no turns: not
  // normed.
  tensor::Tensor query_gain = {};  // [head_dim]
  tensor::Tensor key_gain = {};    // [head_dim]
  float head_norm_epsilon = 1e-6f;
};

// The turns of rotary positions, for the leading 2 pairs elements of every head's query and key; none: not turned.
struct RotaryTurns {
  kernels::RotaryLayout layout = kernels::RotaryLayout::halves;
  size_t pairs = 0;
  std::span<const float> cosines = {}, sines = {};  // [query_len, pairs]
};

// What flows in. For self-attention query, key and value are the same span.
struct MultiHeadInput {
  size_t batch = 1, query_len = 0, key_len = 0;
  std::span<const float> query;  // [batch, query_len, in of the projection]
  std::span<const float> key;    // [batch, key_len, in of the projection]
  std::span<const float> value;  // [batch, key_len, in of the projection]
  Mask mask;                     // over key_len + appended keys
  // None: every row of the batch is one. Not beside appended keys.
  std::span<const Sequence> sequences = {};
  // For self-attention of batch 1 only: query and key of row i take turn i.
  RotaryTurns turns = {};
  // For causal self-attention of one sequence only: the keys and values of what stands before it, after projection and
  // turns. A run attends to them too, puts its own behind them, and forgets those that a window never shows again.
  KeyValueCache* past = nullptr;
  // What keys and values are rounded to as they are produced; that of the past, if there is one.
  Precision kept = Precision::single;
  // Of the projections.
  linear::Compute compute = linear::Compute::single;
};

// What the layer works in. Room is kept: a run that is no larger than an earlier one allocates nothing.
struct MultiHeadWorkspace {
  FloatRoom query, key, value;       // projected, heads side by side
  FloatRoom all_keys, all_values;    // with appended ones behind every sequence
  FloatRoom head_output;             // [batch, query_len, num_heads, value_dim]
  FloatRoom row_reference, row_sum;  // [batch, num_heads, query_len]
  FusedAttention fused;
};

struct MultiHeadOutput {
  tensor::Tensor attention_output;  // [batch, query_len, d_model]
  tensor::Tensor row_reference;     // [batch, num_heads, query_len]
  tensor::Tensor row_sum;           // [batch, num_heads, query_len]
};

// All of multi_head_attention before the output projection. Shows what that shows, up to head_contribution.
// Shapes: result [batch, query_len, num_heads, value_dim], in the workspace.
// Throws: Error (usage) if sizes do not fit each other.
std::span<const float> attend_with_heads(const AttentionConfig& config, const MultiHeadParameters& parameters,
                                         const MultiHeadInput& input, MultiHeadWorkspace& workspace,
                                         const capture::Watch& watch = {});

// Multi-head attention from inputs to output projection:
//
//   Q = x W_Q^T + b_Q, ...   head_h = attention(Q_h, K_h, V_h)   output = concat(head_0, head_1, ...) W_O^T + b_O
//
// with every head's query and key normed and turned on the way, where there are gains and turns. Where query, key and
// value are the same span, their projections are one product. Shows query, key and value before the turn,
// rotated_query, rotated_key, the stages of exact_attention (a past stands on the key axis too), head_output,
// head_contribution and attention_output. Shapes: attention_output [batch, query_len, d_model]. Throws: Error (usage)
// if sizes do not fit each other. Source: Vaswani et al. 2017, section 3.2.2.
void multi_head_attention(const AttentionConfig& config, const MultiHeadParameters& parameters,
                          const MultiHeadInput& input, std::span<float> attention_output, MultiHeadWorkspace& workspace,
                          const capture::Watch& watch = {});
// The same into new tensors.
MultiHeadOutput multi_head_attention(const AttentionConfig& config, const MultiHeadParameters& parameters,
                                     const MultiHeadInput& input, capture::Observer* observer = nullptr,
                                     size_t layer = 0);

// The block-diagonal matrix that makes Split::projection compute what Split::input means: square h of
// squares [num_heads, head_dim, head_dim] stands at rows and columns h * head_dim.
// Shapes: result [num_heads * head_dim, num_heads * head_dim].
tensor::Tensor block_diagonal(const tensor::TensorView& squares);

}  // namespace clearhead::attention
