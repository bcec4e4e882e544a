// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/model/families/family.h"
#include "clearhead/model/families/gated_decoder.h"
#include "clearhead/model/families/gguf_config.h"

namespace clearhead::model {
namespace {

constexpr float kUsualPart = 0.25f;  // of a head that is turned

// Where the settings of rotary positions stand, under the names of old files or of new ones.
RotaryConfig read_turns(ConfigJson& json, size_t head_dim, size_t context_len) {
  const float base = json.number("rotary_emb_base", 10000.0f), part = json.number("rotary_pct", kUsualPart);
  RotaryConfig rotary = read_rotary(json, head_dim, context_len, static_cast<double>(base));
  const bool says_part =
      json.contains("partial_rotary_factor") ||
      (json.contains("rope_parameters") && json.object("rope_parameters")->contains("partial_rotary_factor"));
  if (!says_part) rotary.dim = static_cast<size_t>(static_cast<float>(head_dim) * part);
  return rotary;
}

ModelConfig read_config(ConfigJson& json) {
  const size_t d_model = json.count("hidden_size", 6144), heads = json.count("num_attention_heads", 64);
  if (heads == 0 || d_model % heads != 0) {
    base::fail(json.where(), "num_attention_heads that divide hidden_size",
               fmt::format("{} heads and hidden_size {}", heads, d_model));
  }
  ModelConfig config;
  config.vocab_size = json.count("vocab_size", 50432);
  config.context_len = json.count("max_position_embeddings", 2048);
  config.num_layers = json.count("num_hidden_layers", 44);
  config.d_model = d_model;
  config.d_ff = json.count("intermediate_size", 24576);
  if (config.d_ff == 0) base::fail(json.where(), "intermediate_size of 1 or more", "0");
  config.positions = Positions::none;
  config.norm_placement = NormPlacement::pre;
  config.norm_epsilon = json.number("layer_norm_eps", 1e-5f);
  config.parallel_halves = json.flag("use_parallel_residual", true);
  config.activation = json.meaning("hidden_act", kActivations, "gelu");
  config.attention.num_heads = config.attention.num_kv_heads = heads;
  config.attention.head_dim = config.attention.value_dim = d_model / heads;
  config.attention.causal = attention::Causal::top_left;
  config.attention_bias = json.flag("attention_bias", true);
  config.tied_vocabulary = json.flag("tie_word_embeddings", false);
  config.rotary = read_turns(json, d_model / heads, config.context_len);
  json.ignore({"attention_dropout", "hidden_dropout"});  // training only
  json.ignore({"is_decoder"});                           // how another library uses it
  return config;
}

Parameters read_parameters(const ModelConfig& config, ParameterSource& source) {
  const size_t d_model = config.d_model, d_ff = config.d_ff, dim = config.attention.head_dim;
  const std::string body = source.contains("gpt_neox.embed_in.weight") ? "gpt_neox." : "";
  const auto norm = [&](const std::string& name) { return source.norm(name, d_model); };
  const auto map = [&](const std::string& name, size_t outputs, size_t inputs, bool bias) {
    return source.linear(
        {.weight = name + ".weight", .bias = bias ? name + ".bias" : "", .outputs = outputs, .inputs = inputs});
  };
  Parameters parameters;
  parameters.token_embedding = source.table(body + "embed_in.weight", config.vocab_size, d_model);
  for (size_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string name = body + fmt::format("layers.{}.", layer), heads = name + "attention.query_key_value";
    // Query, key and value of each head stand together, head by head.
    const auto read_role = [&](size_t role) {
      return source.linear({.weight = heads + ".weight",
                            .bias = config.attention_bias ? heads + ".bias" : "",
                            .outputs = d_model,
                            .inputs = d_model,
                            .stored_outputs = 3 * d_model,
                            .row = [=](size_t i) { return (i / dim * 3 + role) * dim + i % dim; }});
    };
    BlockParameters block;
    block.attention.query = read_role(0);
    block.attention.key = read_role(1);
    block.attention.value = read_role(2);
    block.attention.output = map(name + "attention.dense", d_model, d_model, config.attention_bias);
    block.attention_norm = norm(name + "input_layernorm");
    block.feed_forward_norm = norm(name + "post_attention_layernorm");
    block.feed_forward_in = map(name + "mlp.dense_h_to_4h", d_ff, d_model, true);
    block.feed_forward_out = map(name + "mlp.dense_4h_to_h", d_model, d_ff, true);
    parameters.blocks.push_back(std::move(block));
    source.ignore(name + "attention.bias");                 // the causal mask, a buffer
    source.ignore(name + "attention.masked_bias");          // what old peers put in place of a masked score
    source.ignore(name + "attention.rotary_emb.inv_freq");  // computed from the config
  }
  parameters.final_norm = norm(body + "final_layer_norm");
  const std::string head = config.tied_vocabulary ? body + "embed_in.weight" : "embed_out.weight";
  source.ignore("embed_out.weight");
  if (source.contains(head)) parameters.vocabulary = source.vocabulary(head, config.vocab_size, d_model);
  return parameters;
}

}  // namespace

Family gpt_neox() {
  return {"gpt_neox", read_config, no_prefix, read_parameters, "gptneox", read_gpt_neox_gguf, read_gpt_gguf_parameters};
}

}  // namespace clearhead::model
