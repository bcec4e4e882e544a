// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/model/families/family.h"
#include "clearhead/model/families/gated_decoder.h"
#include "clearhead/model/families/gguf_config.h"

namespace clearhead::model {
namespace {

constexpr size_t kInnerPerWidth = 4;  // n_inner / n_embd where the config does not say

ModelConfig read_config(ConfigJson& json) {
  const size_t d_model = json.count("n_embd", 768), num_heads = json.count("n_head", 12);
  if (num_heads == 0 || d_model % num_heads != 0) {
    base::fail(json.where(), "n_head that divides n_embd", fmt::format("{} heads and n_embd {}", num_heads, d_model));
  }
  ModelConfig config;
  config.vocab_size = json.count("vocab_size", 50257);
  config.context_len = json.count("n_positions", 1024);
  config.num_layers = json.count("n_layer", 12);
  config.d_model = d_model;
  config.d_ff = json.count("n_inner", kInnerPerWidth * d_model);
  if (d_model != 0 && config.d_ff == 0) base::fail(json.where(), "n_inner of 1 or more", "0");
  config.positions = Positions::learned;
  config.norm_placement = NormPlacement::pre;
  config.norm_epsilon = json.number("layer_norm_epsilon", 1e-5f);
  config.activation = json.meaning("activation_function", kActivations, "gelu_new");
  config.attention.num_heads = config.attention.num_kv_heads = num_heads;
  config.attention.head_dim = config.attention.value_dim = d_model / num_heads;
  config.attention.causal = attention::Causal::top_left;
  config.tied_vocabulary = json.flag("tie_word_embeddings", true);
  json.require("scale_attn_weights", true);
  json.require("scale_attn_by_inverse_layer_idx", false);
  json.require("reorder_and_upcast_attn", false);
  json.require("add_cross_attention", false);
  json.require_empty("pruned_heads");
  json.ignore({"attn_pdrop", "embd_pdrop", "resid_pdrop"});  // training only
  json.ignore({"summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
               "summary_use_proj"});                     // of heads over a whole text, which are not computed
  json.ignore({"n_ctx"});                                // an old second name of n_positions, which peers do not read
  json.ignore({"n_special", "predict_special_tokens"});  // of the predecessor's vocabulary, which peers do not read
  return config;
}

// Some of the outputs of a map that is stored [inputs, stored_outputs].
struct Conv1d {
  std::string name;
  size_t inputs, outputs;
  size_t first_output = 0, stored_outputs = 0;  // as in StoredLinear
};

linear::PackedLinear read_conv1d(ParameterSource& source, const Conv1d& map) {
  return source.linear({.weight = map.name + ".weight",
                        .bias = map.name + ".bias",
                        .outputs = map.outputs,
                        .inputs = map.inputs,
                        .orientation = Orientation::in_out,
                        .first_output = map.first_output,
                        .stored_outputs = map.stored_outputs});
}

Parameters read_parameters(const ModelConfig& config, ParameterSource& source) {
  const size_t d_model = config.d_model, d_ff = config.d_ff;
  // What stands in front of all names but that of the head.
  const std::string body = source.contains("transformer.wte.weight") ? "transformer." : "";
  const std::string embedding = body + "wte.weight", head = "lm_head.weight";
  Parameters parameters;
  parameters.token_embedding = source.table(embedding, config.vocab_size, d_model);
  parameters.position_embedding = source.table(body + "wpe.weight", config.context_len, d_model);
  for (size_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string name = body + fmt::format("h.{}.", layer);
    // The outputs of c_attn: query, key and value.
    const auto read_third = [&](size_t first_output) {
      return read_conv1d(source, {name + "attn.c_attn", d_model, d_model, first_output, 3 * d_model});
    };
    BlockParameters block;
    block.attention.query = read_third(0);
    block.attention.key = read_third(d_model);
    block.attention.value = read_third(2 * d_model);
    block.attention.output = read_conv1d(source, {name + "attn.c_proj", d_model, d_model});
    block.attention_norm = source.norm(name + "ln_1", d_model);
    block.feed_forward_in = read_conv1d(source, {name + "mlp.c_fc", d_model, d_ff});
    block.feed_forward_out = read_conv1d(source, {name + "mlp.c_proj", d_ff, d_model});
    block.feed_forward_norm = source.norm(name + "ln_2", d_model);
    parameters.blocks.push_back(std::move(block));
    source.ignore(name + "attn.bias");         // the causal mask, a buffer
    source.ignore(name + "attn.masked_bias");  // what old peers put in place of a masked score
  }
  parameters.final_norm = source.norm(body + "ln_f", d_model);
  if (config.tied_vocabulary) {
    source.ignore(head);  // the embedding once more
    parameters.vocabulary = source.vocabulary(embedding, config.vocab_size, d_model);
    parameters.token_embedding = tied_table(std::move(parameters.token_embedding), parameters.vocabulary);
  } else if (source.contains(head)) {  // else it is a body without a head
    parameters.vocabulary = source.vocabulary(head, config.vocab_size, d_model);
  }
  return parameters;
}

}  // namespace

Family gpt2() {
  return {"gpt2", read_config, no_prefix, read_parameters, "gpt2", read_gpt2_gguf, read_gpt_gguf_parameters};
}

}  // namespace clearhead::model
