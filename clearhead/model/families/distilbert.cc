// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/model/families/family.h"

namespace clearhead::model {
namespace {

constexpr Meaning<Positions> kPositions[] = {{"absolute", Positions::learned}};

ModelConfig read_config(ConfigJson& json) {
  const size_t d_model = json.count("dim", 768), num_heads = json.count("n_heads", 12);
  if (num_heads == 0 || d_model % num_heads != 0) {
    base::fail(json.where(), "n_heads that divide dim", fmt::format("{} heads and dim {}", num_heads, d_model));
  }
  ModelConfig config;
  config.vocab_size = json.count("vocab_size", 30522);
  config.context_len = json.count("max_position_embeddings", 512);
  config.num_layers = json.count("n_layers", 6);
  config.d_model = d_model;
  config.d_ff = json.count("hidden_dim", 3072);
  if (config.d_ff == 0) base::fail(json.where(), "hidden_dim of 1 or more", "0");
  config.positions = json.meaning("position_embedding_type", kPositions, "absolute");
  config.embedding_norm = true;
  config.norm_placement = NormPlacement::post;
  config.norm_epsilon = 1e-12f;  // no key says otherwise
  config.activation = json.meaning("activation", kActivations, "gelu");
  config.attention.num_heads = config.attention.num_kv_heads = num_heads;
  config.attention.head_dim = config.attention.value_dim = d_model / num_heads;
  json.require_empty("pruned_heads");
  json.ignore({"sinusoidal_pos_embds"});  // how the stored table of positions began
  json.ignore({"attention_dropout", "dropout", "qa_dropout", "seq_classif_dropout"});  // training only
  json.ignore({"tie_weights_", "tie_word_embeddings"});  // of the head over the vocabulary, not computed
  return config;
}

std::string name_prefix(const format::Checkpoint& checkpoint) {
  return checkpoint.contains("distilbert.embeddings.word_embeddings.weight") ? "distilbert." : "";
}

Parameters read_parameters(const ModelConfig& config, ParameterSource& source) {
  const size_t d_model = config.d_model, d_ff = config.d_ff;
  Parameters parameters;
  parameters.token_embedding = source.table("embeddings.word_embeddings.weight", config.vocab_size, d_model);
  parameters.position_embedding = source.table("embeddings.position_embeddings.weight", config.context_len, d_model);
  parameters.embedding_norm = source.norm("embeddings.LayerNorm", d_model);
  for (size_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string name = fmt::format("transformer.layer.{}.", layer);
    BlockParameters block;
    block.attention.query = source.linear(name + "attention.q_lin", d_model, d_model);
    block.attention.key = source.linear(name + "attention.k_lin", d_model, d_model);
    block.attention.value = source.linear(name + "attention.v_lin", d_model, d_model);
    block.attention.output = source.linear(name + "attention.out_lin", d_model, d_model);
    block.attention_norm = source.norm(name + "sa_layer_norm", d_model);
    block.feed_forward_in = source.linear(name + "ffn.lin1", d_ff, d_model);
    block.feed_forward_out = source.linear(name + "ffn.lin2", d_model, d_ff);
    block.feed_forward_norm = source.norm(name + "output_layer_norm", d_model);
    parameters.blocks.push_back(std::move(block));
  }
  source.ignore("embeddings.position_ids");
  return parameters;
}

}  // namespace

Family distilbert() { return {"distilbert", read_config, name_prefix, read_parameters}; }

}  // namespace clearhead::model
