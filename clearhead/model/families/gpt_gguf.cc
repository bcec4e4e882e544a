// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <utility>

#include "clearhead/model/families/gguf_config.h"

namespace clearhead::model {
namespace {

ModelConfig read_shared(GgufConfig& gguf, size_t vocab_size) {
  ModelConfig config = read_sizes_gguf(gguf, vocab_size, true);
  config.norm_placement = NormPlacement::pre;
  config.norm_epsilon = static_cast<float>(gguf.number("attention.layer_norm_epsilon"));
  return config;
}

}  // namespace

ModelConfig read_gpt2_gguf(GgufConfig& gguf, size_t vocab_size) {
  ModelConfig config = read_shared(gguf, vocab_size);
  config.positions = Positions::learned;
  config.activation = linear::Activation::gelu_tanh;
  return config;
}

ModelConfig read_gpt_neox_gguf(GgufConfig& gguf, size_t vocab_size) {
  ModelConfig config = read_shared(gguf, vocab_size);
  config.positions = Positions::none;
  config.activation = linear::Activation::gelu;
  config.parallel_halves = gguf.flag("use_parallel_residual");
  config.rotary = read_rotary_gguf(gguf, config.attention.head_dim, config.context_len);
  return config;
}

attention::MultiHeadParameters read_gguf_heads(const ModelConfig& config, ParameterSource& source,
                                               const std::string& name, bool fused) {
  const attention::AttentionConfig& heads = config.attention;
  const size_t query = heads.num_heads * heads.head_dim, key = heads.num_kv_heads * heads.head_dim,
               value = heads.num_kv_heads * heads.value_dim;
  const auto read = [&](const char* role, size_t first_output, size_t outputs) {
    if (!fused) return source.linear(name + role, outputs, config.d_model);
    return source.linear({.weight = name + "attn_qkv.weight",
                          .bias = name + "attn_qkv.bias",
                          .outputs = outputs,
                          .inputs = config.d_model,
                          .first_output = first_output,
                          .stored_outputs = query + key + value});
  };
  attention::MultiHeadParameters parameters;
  parameters.query = read("attn_q", 0, query);
  parameters.key = read("attn_k", query, key);
  parameters.value = read("attn_v", query + key, value);
  parameters.output = source.linear(name + "attn_output", config.d_model, heads.num_heads * heads.value_dim);
  return parameters;
}

Parameters read_gpt_gguf_parameters(const ModelConfig& config, ParameterSource& source) {
  const size_t d_model = config.d_model, d_ff = config.d_ff;
  const std::string embedding = "token_embd.weight", output = "output.weight";
  Parameters parameters;
  parameters.token_embedding = source.table(embedding, config.vocab_size, d_model);
  if (config.positions == Positions::learned) {
    parameters.position_embedding = source.table("position_embd.weight", config.position_rows(), d_model);
  }
  for (size_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string name = fmt::format("blk.{}.", layer);
    BlockParameters block;
    block.attention = read_gguf_heads(config, source, name, true);
    block.attention_norm = source.norm(name + "attn_norm", d_model);
    block.feed_forward_norm = source.norm(name + "ffn_norm", d_model);
    block.feed_forward_in = source.linear(name + "ffn_up", d_ff, d_model);
    block.feed_forward_out = source.linear(name + "ffn_down", d_model, d_ff);
    parameters.blocks.push_back(std::move(block));
  }
  parameters.final_norm = source.norm("output_norm", d_model);
  const bool tied = !source.contains(output);
  parameters.vocabulary = source.vocabulary(tied ? embedding : output, config.vocab_size, d_model);
  if (tied) parameters.token_embedding = tied_table(std::move(parameters.token_embedding), parameters.vocabulary);
  return parameters;
}

}  // namespace clearhead::model
