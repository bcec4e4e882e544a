// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "clearhead/apps/cli/op/attributes.h"
#include "clearhead/apps/cli/op/operator.h"
#include "clearhead/apps/cli/op/tensors.h"

namespace clearhead::apps {

// The ONNX operator Attention of opset 23 to 25: inputs Q, K, V, attn_mask (true = may attend), past_key, past_value,
// nonpad_kv_seqlen; outputs Y, row_reference, row_sum, present_key, present_value, qk_matmul_output, and on request
// what attention_statistics.h lists, with the input key_groups and the attributes top_k, map_queries, map_keys. The
// attribute precision ("float" or "bfloat16", ours) says what the products are computed in (attention/config.h). The
// softmax is computed in float whatever softmax_precision says, or in double if it says so. Differences on purpose: a
// mask value of -1e30 or below forbids its key, and what stands at a key that may not be seen touches nothing, NaN
// included. Source: the ONNX operator schemas.
Outputs attention_operator(const OpRequest& request, Inputs& inputs, Attributes& attributes);

// Attention with its projections under the names of PyTorch's module MultiheadAttention (true in a boolean mask = must
// not attend); outputs attn_output, attn_output_weights.
// Source: the documentation of torch.nn.MultiheadAttention.
Outputs multi_head_attention_operator(const OpRequest& request, Inputs& inputs, Attributes& attributes);

// The ONNX operator RotaryEmbedding of opset 23: inputs X, cos_cache, sin_cache, position_ids; attributes interleaved,
// num_heads, rotary_embedding_dim; output Y.
// Source: the ONNX operator schemas.
Outputs rotary_embedding_operator(const OpRequest& request, Inputs& inputs, Attributes& attributes);

// The ONNX operator Softmax of opset 13: input, attribute axis (default -1), output. A line of -infinity alone gives
// zeros, as a row of attention that sees nothing does.
Outputs softmax_operator(const OpRequest& request, Inputs& inputs, Attributes& attributes);

}  // namespace clearhead::apps
