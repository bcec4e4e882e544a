// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/op/operator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "clearhead/apps/cli/op/operators.h"
#include "clearhead/base/error.h"
#include "clearhead/base/output_file.h"

namespace clearhead::apps {
namespace {

// Names that stand in the error for an unknown name too; a test compares.
struct Operator {
  std::string_view name, inputs, attributes, outputs;
  Outputs (*run)(const OpRequest&, Inputs&, Attributes&);
};

constexpr Operator kOperators[] = {
    {"attention", "Q, K, V, attn_mask, past_key, past_value, nonpad_kv_seqlen, key_groups",
     "is_causal, scale, softcap, q_num_heads, kv_num_heads, qk_matmul_output_mode, softmax_precision,\n"
     "             left_window_size, right_window_size, opset, precision, top_k, map_queries, map_keys",
     "Y, row_reference, row_sum, present_key, present_value, qk_matmul_output, entropy, distance,\n"
     "             top_weights, top_keys, group_mass, map_sum, map_maximum, received",
     attention_operator},
    {"multi_head_attention",
     "query, key, value, in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias,\n"
     "             bias_k, bias_v, out_proj.weight, out_proj.bias, key_padding_mask, attn_mask",
     "num_heads, batch_first, add_zero_attn, is_causal, average_attn_weights, split",
     "attn_output, attn_output_weights", multi_head_attention_operator},
    {"rotary_embedding", "X, cos_cache, sin_cache, position_ids", "interleaved, num_heads, rotary_embedding_dim", "Y",
     rotary_embedding_operator},
    {"softmax", "input", "axis", "output", softmax_operator},
};

}  // namespace

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const Operator& one : kOperators) names.emplace_back(one.name);
  return names;
}

std::string operator_help() {
  std::string text = "Operators, with the names of their tensors:\n";
  for (const Operator& one : kOperators) {
    text += fmt::format("\n{}\n  inputs     {}\n  attributes {}\n  outputs    {}\n", one.name, one.inputs,
                        one.attributes, one.outputs);
  }
  return text +
         "\nTrue in a boolean mask means: attention may attend, multi_head_attention must not. Wrong names, types and\n"
         "shapes are refused, and the error says what was expected.";
}

void run_operator(const OpRequest& request) {
  for (const Operator& one : kOperators) {
    if (one.name != request.name) continue;
    const std::string where = "op " + request.name;
    Attributes attributes(where, request.attributes);
    base::refuse_to_replace(where, request.output, {&request.input, 1});
    const auto file = format::SafetensorsFile::open(request.input);
    Inputs inputs(where, file);
    one.run(request, inputs, attributes).write(request.output);
    return;
  }
  base::refuse("op", fmt::format("an operator of {}", fmt::join(operator_names(), ", ")), base::quoted(request.name));
}

}  // namespace clearhead::apps
