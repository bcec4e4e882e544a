// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/model/families/gated_decoder.h"

namespace clearhead::model {
namespace {

// What the tensors of one kind of file are called; {} is the layer.
struct Names {
  const char *embedding, *final_norm, *output, *layer;
  const char *attention_norm, *query, *key, *value, *attention_output, *query_norm, *key_norm;
  const char *feed_forward_norm, *gate, *up, *down;
  const char *attention_output_norm, *feed_forward_norm_between, *feed_forward_output_norm;  // with norms around
};

constexpr Names kHubNames = {.embedding = "embed_tokens",
                             .final_norm = "norm",
                             .output = "lm_head",
                             .layer = "layers.{}.",
                             .attention_norm = "input_layernorm",
                             .query = "self_attn.q_proj",
                             .key = "self_attn.k_proj",
                             .value = "self_attn.v_proj",
                             .attention_output = "self_attn.o_proj",
                             .query_norm = "self_attn.q_norm",
                             .key_norm = "self_attn.k_norm",
                             .feed_forward_norm = "post_attention_layernorm",
                             .gate = "mlp.gate_proj",
                             .up = "mlp.up_proj",
                             .down = "mlp.down_proj",
                             .attention_output_norm = "post_attention_layernorm",
                             .feed_forward_norm_between = "pre_feedforward_layernorm",
                             .feed_forward_output_norm = "post_feedforward_layernorm"};

constexpr Names kGgufNames = {.embedding = "token_embd",
                              .final_norm = "output_norm",
                              .output = "output",
                              .layer = "blk.{}.",
                              .attention_norm = "attn_norm",
                              .query = "attn_q",
                              .key = "attn_k",
                              .value = "attn_v",
                              .attention_output = "attn_output",
                              .query_norm = "attn_q_norm",
                              .key_norm = "attn_k_norm",
                              .feed_forward_norm = "ffn_norm",
                              .gate = "ffn_gate",
                              .up = "ffn_up",
                              .down = "ffn_down",
                              .attention_output_norm = "post_attention_norm",
                              .feed_forward_norm_between = "ffn_norm",
                              .feed_forward_output_norm = "post_ffw_norm"};

// Reads the tensors of one file.
class Reader {
 public:
  Reader(const ModelConfig& config, ParameterSource& source, const GatedParts& parts)
      : config_(config), source_(source), parts_(parts), names_(source.is_gguf() ? kGgufNames : kHubNames) {}

  const Names& names() const { return names_; }
  // What stands in front of all names but that of the head.
  std::string body() const { return source_.contains("model.embed_tokens.weight") ? "model." : ""; }

  NormParameters norm(const std::string& name, size_t size) {
    // A GGUF has the offset in its gains already.
    return source_.rms_norm(name + ".weight", size, source_.is_gguf() ? 0 : parts_.norm_offset);
  }

  linear::PackedLinear map(const std::string& name, size_t outputs, size_t inputs, bool bias) {
    return source_.linear(stored(name, outputs, inputs, bias));
  }

  // Query or key: its heads may be stored in the order of pairs (0, half), (1, half + 1), ...
  linear::PackedLinear heads(const std::string& name, size_t num_heads) {
    const size_t dim = config_.attention.head_dim;
    StoredLinear map = stored(name, num_heads * dim, config_.d_model, parts_.attention_bias);
    if (parts_.pairs_in_gguf && source_.is_gguf()) {
      const size_t turned = config_.rotary->dim, half = turned / 2;
      map.row = [dim, turned, half](size_t i) {
        const size_t head = i / dim * dim, at = i % dim;
        return at < turned ? head + 2 * (at % half) + at / half : i;
      };
    }
    return source_.linear(map);
  }

  BlockParameters block(size_t layer) {
    const attention::AttentionConfig& attention = config_.attention;
    const size_t d_model = config_.d_model, d_ff = config_.d_ff;
    const std::string name = body() + fmt::format(fmt::runtime(names_.layer), layer);
    BlockParameters block;
    block.attention_norm = norm(name + names_.attention_norm, d_model);
    block.attention.query = heads(name + names_.query, attention.num_heads);
    block.attention.key = heads(name + names_.key, attention.num_kv_heads);
    block.attention.value =
        map(name + names_.value, attention.num_kv_heads * attention.value_dim, d_model, parts_.attention_bias);
    block.attention.output =
        map(name + names_.attention_output, d_model, attention.num_heads * attention.value_dim, parts_.output_bias);
    if (config_.head_norm) {
      block.attention.query_gain = norm(name + names_.query_norm, attention.head_dim).gain;
      block.attention.key_gain = norm(name + names_.key_norm, attention.head_dim).gain;
      block.attention.head_norm_epsilon = config_.norm_epsilon;
    }
    if (parts_.norms_around) {
      block.attention_output_norm = norm(name + names_.attention_output_norm, d_model);
      block.feed_forward_norm = norm(name + names_.feed_forward_norm_between, d_model);
      block.feed_forward_output_norm = norm(name + names_.feed_forward_output_norm, d_model);
    } else {
      block.feed_forward_norm = norm(name + names_.feed_forward_norm, d_model);
    }
    block.feed_forward_gate = map(name + names_.gate, d_ff, d_model, parts_.feed_forward_bias);
    block.feed_forward_in = map(name + names_.up, d_ff, d_model, parts_.feed_forward_bias);
    block.feed_forward_out = map(name + names_.down, d_model, d_ff, parts_.feed_forward_bias);
    source_.ignore(name + "self_attn.rotary_emb.inv_freq");  // a buffer of old files, computed from the config
    source_.ignore(name + "attn_rot_embd.weight");           // the same in a GGUF
    return block;
  }

 private:
  StoredLinear stored(const std::string& name, size_t outputs, size_t inputs, bool bias) const {
    const bool found = source_.is_gguf() && source_.contains(name + ".bias");  // no key of a GGUF says it
    return {
        .weight = name + ".weight", .bias = bias || found ? name + ".bias" : "", .outputs = outputs, .inputs = inputs};
  }

  const ModelConfig& config_;
  ParameterSource& source_;
  const GatedParts& parts_;
  const Names& names_;
};

// The divisors of rotary frequencies that a GGUF may have; none if it has none.
std::vector<float> read_rotary_divisors(const ModelConfig& config, ParameterSource& source) {
  const std::string name = "rope_freqs.weight";
  if (!source.contains(name)) return {};
  std::vector<float> divisors = source.numbers(name, config.rotary->dim / 2);
  for (const float divisor : divisors) {
    if (std::isfinite(divisor) && divisor > 0) continue;
    base::fail(source.where(), fmt::format("{} of numbers above 0", base::quoted(name)), fmt::format("{}", divisor),
               "the file is damaged");
  }
  return divisors;
}

}  // namespace

Parameters read_gated_parameters(const ModelConfig& config, ParameterSource& source, const GatedParts& parts) {
  Reader reader(config, source, parts);
  const Names& names = reader.names();
  const std::string embedding = reader.body() + names.embedding + ".weight",
                    output = names.output + std::string(".weight");
  Parameters parameters;
  parameters.token_embedding = source.table(embedding, config.vocab_size, config.d_model);
  for (size_t layer = 0; layer < config.num_layers; ++layer) parameters.blocks.push_back(reader.block(layer));
  parameters.final_norm = reader.norm(reader.body() + names.final_norm, config.d_model);
  const bool stored = source.contains(output), tied = source.is_gguf() ? !stored : config.tied_vocabulary;
  if (tied) source.ignore(output);
  if (tied || stored) {  // else it is a body without a head
    parameters.vocabulary = source.vocabulary(tied ? embedding : output, config.vocab_size, config.d_model);
    if (tied) parameters.token_embedding = tied_table(std::move(parameters.token_embedding), parameters.vocabulary);
  }
  if (source.is_gguf()) {
    parameters.rotary_divisors = read_rotary_divisors(config, source);
    for (const char* factors : {"long", "short"}) source.ignore(fmt::format("rope_factors_{}.weight", factors));
  }
  return parameters;
}

}  // namespace clearhead::model
