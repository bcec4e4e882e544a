// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "clearhead/attention/config.h"
#include "clearhead/attention/mask.h"
#include "clearhead/attention/reference.h"

namespace clearhead::attention {

// One projection in double: y = x W^T + b.
struct ReferenceProjection {
  std::vector<double> weight;  // [out, in]
  std::vector<double> bias;    // [out], or empty for none
};

struct ReferenceParameters {
  ReferenceProjection query, key, value, output;  // shapes as in MultiHeadParameters
  std::vector<double> appended_key;    // [appended, num_kv_heads, head_dim], behind the keys of every sequence
  std::vector<double> appended_value;  // [appended, num_kv_heads, value_dim]
};

struct ReferenceMultiHeadInput {
  size_t batch = 1, query_len = 0, key_len = 0;
  std::span<const double> query, key, value;  // [batch, len, in of the projection]
  Mask mask;                                  // over key_len + appended keys
};

struct ReferenceMultiHeadOutput {
  std::vector<double> query, key, value;  // projected: [batch, len, heads or kv_heads, dim], appended keys included
  ReferenceOutput attention;
  std::vector<double> attention_output;  // [batch, query_len, d_model]
};

// Multi-head attention by plain loops in double: the definition that multi_head_attention is compared with.
// Throws: Error (usage) if sizes do not fit each other.
// Source: Vaswani et al. 2017, section 3.2.2.
ReferenceMultiHeadOutput reference_multi_head_attention(const AttentionConfig& config,
                                                        const ReferenceParameters& parameters,
                                                        const ReferenceMultiHeadInput& input);

}  // namespace clearhead::attention
