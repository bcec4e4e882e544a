// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "clearhead/apps/cli/op/attention_statistics.h"
#include "clearhead/apps/cli/op/attributes.h"
#include "clearhead/apps/cli/op/tensors.h"
#include "clearhead/attention/config.h"
#include "clearhead/attention/exact.h"
#include "clearhead/attention/mask.h"
#include "clearhead/attention/sequence.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::apps {

// What qk_matmul_output shows, as the attribute counts.
enum class ScoreOutput { scaled, after_soft_cap, after_mask, weights };

// The attributes of the operator Attention.
struct AttentionSettings {
  bool causal = false;
  std::optional<float> scale, soft_cap;
  std::optional<size_t> num_heads, num_kv_heads, left_window, right_window;
  std::optional<ScoreOutput> score_output;  // absent: not asked for by attribute
  bool in_double = false;                   // softmax_precision asks for it
  attention::Precision precision = attention::Precision::single;
  int64_t opset = 25;
  StatisticSettings statistics;
};

// Throws: Error (usage) for an attribute that is unknown, out of range or later than the opset.
AttentionSettings read_attention_settings(Attributes& attributes);

// The inputs in the order of the computation.
struct AttentionProblem {
  attention::AttentionConfig config;
  size_t batch, query_len, key_len;  // key_len with the past
  tensor::Tensor query, key, value;  // [batch, len, heads, dim] as F32, F16 or BF16, or all as F64
  tensor::Tensor mask_values;        // what mask refers to
  attention::Mask mask;
  std::vector<attention::Sequence> sequences;   // of nonpad_kv_seqlen, else none
  std::vector<std::vector<size_t>> key_groups;  // of the input key_groups
  tensor::DType first;                          // type of Q
  bool flat;                                    // Q is [batch, len, heads * dim]
  bool cached;                                  // there is a past
};

// The problem as a run in float reads it.
attention::AttentionInput float_input(const AttentionProblem& problem);

// Throws: Error (usage) for an input that is unknown, missing, of another type or shape, or later than the opset.
AttentionProblem read_attention_problem(Inputs& inputs, const AttentionSettings& settings);

}  // namespace clearhead::apps
