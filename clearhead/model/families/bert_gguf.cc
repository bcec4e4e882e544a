// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <utility>

#include "clearhead/model/families/gguf_config.h"

namespace clearhead::model {

ModelConfig read_bert_gguf(GgufConfig& gguf, size_t vocab_size) {
  ModelConfig config = read_sizes_gguf(gguf, vocab_size, false);
  config.type_vocab_size = gguf.rows("token_types.weight");  // DistilBERT has none
  config.positions = Positions::learned;                     // the rows in front of the first position are cut off
  config.embedding_norm = true;
  config.norm_placement = NormPlacement::post;
  config.norm_epsilon = static_cast<float>(gguf.number("attention.layer_norm_epsilon"));
  config.activation = linear::Activation::gelu;
  return config;
}

Parameters read_bert_gguf_parameters(const ModelConfig& config, ParameterSource& source) {
  const size_t d_model = config.d_model, d_ff = config.d_ff;
  Parameters parameters;
  parameters.token_embedding = source.table("token_embd.weight", config.vocab_size, d_model);
  parameters.position_embedding = source.table("position_embd.weight", config.position_rows(), d_model);
  if (config.type_vocab_size != 0) {
    parameters.token_type_embedding = source.table("token_types.weight", config.type_vocab_size, d_model);
  }
  parameters.embedding_norm = source.norm("token_embd_norm", d_model);
  for (size_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string name = fmt::format("blk.{}.", layer);
    BlockParameters block;
    block.attention = read_gguf_heads(config, source, name, source.contains(name + "attn_qkv.weight"));
    block.attention_norm = source.norm(name + "attn_output_norm", d_model);
    block.feed_forward_in = source.linear(name + "ffn_up", d_ff, d_model);
    block.feed_forward_out = source.linear(name + "ffn_down", d_model, d_ff);
    block.feed_forward_norm = source.norm(name + "layer_output_norm", d_model);
    parameters.blocks.push_back(std::move(block));
  }
  for (const char* head : {"cls", "cls.output"}) {  // over a whole text, not computed
    for (const char* part : {".weight", ".bias"}) source.ignore(std::string(head) + part);
  }
  return parameters;
}

}  // namespace clearhead::model
