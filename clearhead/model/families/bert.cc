// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/model/families/family.h"
#include "clearhead/model/families/gguf_config.h"

namespace clearhead::model {
namespace {

constexpr Meaning<Positions> kPositions[] = {{"absolute", Positions::learned}};
constexpr Meaning<attention::Causal> kDirections[] = {{"bidi", attention::Causal::none}};

// Old checkpoints call gain and bias gamma and beta.
NormParameters read_norm(ParameterSource& source, const std::string& name, size_t d_model) {
  return source.norm(source.first_of({name + ".weight", name + ".gamma"}),
                     source.first_of({name + ".bias", name + ".beta"}), d_model);
}

}  // namespace

ModelConfig read_bert_config(ConfigJson& json) {
  const size_t d_model = json.count("hidden_size", 768), num_heads = json.count("num_attention_heads", 12);
  if (num_heads == 0 || d_model % num_heads != 0) {
    base::fail(json.where(), "num_attention_heads that divide hidden_size",
               fmt::format("{} heads and hidden_size {}", num_heads, d_model));
  }
  ModelConfig config;
  config.vocab_size = json.count("vocab_size", 30522);
  config.type_vocab_size = json.count("type_vocab_size", 2);
  config.context_len = json.count("max_position_embeddings", 512);
  config.num_layers = json.count("num_hidden_layers", 12);
  config.d_model = d_model;
  config.d_ff = json.count("intermediate_size", 3072);
  if (config.d_ff == 0) base::fail(json.where(), "intermediate_size of 1 or more", "0");
  config.positions = json.meaning("position_embedding_type", kPositions, "absolute");
  config.embedding_norm = true;
  config.norm_placement = NormPlacement::post;
  config.norm_epsilon = json.number("layer_norm_eps", 1e-12f);
  config.activation = json.meaning("hidden_act", kActivations, "gelu");
  config.attention.num_heads = config.attention.num_kv_heads = num_heads;
  config.attention.head_dim = config.attention.value_dim = d_model / num_heads;
  json.require("is_decoder", false);
  json.require("is_encoder_decoder", false);
  json.require("add_cross_attention", false);
  json.require_empty("pruned_heads");
  json.ignore({"tie_word_embeddings"});  // of the head over the vocabulary, which is not computed
  // Of Chinese and multilingual checkpoints: how the first head over a whole text was made, which no peer reads.
  json.ignore(
      {"pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"});
  config.attention.causal = json.meaning("directionality", kDirections, "bidi");
  return config;
}

Parameters read_bert_parameters(const ModelConfig& config, ParameterSource& source) {
  const size_t d_model = config.d_model, d_ff = config.d_ff;
  Parameters parameters;
  parameters.token_embedding = source.table("embeddings.word_embeddings.weight", config.vocab_size, d_model);
  parameters.position_embedding =
      source.table("embeddings.position_embeddings.weight", config.position_rows(), d_model);
  if (config.type_vocab_size != 0) {
    parameters.token_type_embedding =
        source.table("embeddings.token_type_embeddings.weight", config.type_vocab_size, d_model);
  }
  parameters.embedding_norm = read_norm(source, "embeddings.LayerNorm", d_model);
  for (size_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string name = fmt::format("encoder.layer.{}.", layer);
    BlockParameters block;
    block.attention.query = source.linear(name + "attention.self.query", d_model, d_model);
    block.attention.key = source.linear(name + "attention.self.key", d_model, d_model);
    block.attention.value = source.linear(name + "attention.self.value", d_model, d_model);
    block.attention.output = source.linear(name + "attention.output.dense", d_model, d_model);
    block.attention_norm = read_norm(source, name + "attention.output.LayerNorm", d_model);
    block.feed_forward_in = source.linear(name + "intermediate.dense", d_ff, d_model);
    block.feed_forward_out = source.linear(name + "output.dense", d_model, d_ff);
    block.feed_forward_norm = read_norm(source, name + "output.LayerNorm", d_model);
    parameters.blocks.push_back(std::move(block));
  }
  source.ignore("embeddings.position_ids");
  source.ignore("pooler.dense.weight");
  source.ignore("pooler.dense.bias");
  return parameters;
}

namespace {

std::string name_prefix(const format::Checkpoint& checkpoint) {
  return checkpoint.contains("bert.embeddings.word_embeddings.weight") ? "bert." : "";
}

}  // namespace

Family bert() {
  return {"bert",         read_bert_config,         name_prefix, read_bert_parameters, "bert",
          read_bert_gguf, read_bert_gguf_parameters};
}

}  // namespace clearhead::model
