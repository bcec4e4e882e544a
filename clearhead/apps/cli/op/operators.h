// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "clearhead/apps/cli/op/attributes.h"
#include "clearhead/apps/cli/op/operator.h"
#include "clearhead/apps/cli/op/tensors.h"

namespace clearhead::apps {

// The ONNX operator Attention of opset 23 to 25, as far as it has no cache, no soft cap and no window: inputs Q, K, V,
// attn_mask (true = may attend); outputs Y, row_reference, row_sum, qk_matmul_output.
// Source: the ONNX operator schemas.
Outputs attention_operator(const OpRequest& request, Inputs& inputs, Attributes& attributes);

// Attention with its projections under the names of PyTorch's module MultiheadAttention (true in a boolean mask = must
// not attend); outputs attn_output, attn_output_weights.
// Source: the documentation of torch.nn.MultiheadAttention.
Outputs multi_head_attention_operator(const OpRequest& request, Inputs& inputs, Attributes& attributes);

// The ONNX operator Softmax of opset 13: input, attribute axis (default -1), output. A line of -infinity alone gives
// zeros, as a row of attention that sees nothing does.
Outputs softmax_operator(const OpRequest& request, Inputs& inputs, Attributes& attributes);

}  // namespace clearhead::apps
