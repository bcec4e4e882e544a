// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "clearhead/model/families/family.h"
#include "clearhead/model/families/gated_decoder.h"

namespace clearhead::model {
namespace {

ModelConfig read_config(ConfigJson& json) {
  ModelConfig config = read_gated_config(json, {});
  config.rotary = read_rotary(json, config.attention.head_dim, config.context_len);
  config.attention_bias = json.flag("attention_bias", false);
  config.feed_forward_bias = json.flag("mlp_bias", false);
  return config;
}

ModelConfig read_mistral(ConfigJson& json) {
  ModelConfig config = read_gated_config(json, {.intermediate_size = 14336, .num_kv_heads = 8, .context_len = 131072});
  config.rotary = read_rotary(json, config.attention.head_dim, config.context_len);
  json.require("attention_bias", false);
  json.require("mlp_bias", false);
  const std::optional<size_t> usual = json.is_null("sliding_window") ? std::nullopt : std::optional<size_t>(4096);
  config.attention.left_window = read_left_window(json, "sliding_window", usual);
  return config;
}

ModelConfig read_gguf(GgufConfig& gguf, size_t vocab_size) {
  constexpr std::string_view kPairs = "Meta AI original pth";  // what the first files call their rows in pairs
  constexpr Meaning<bool> kLayouts[] = {{kPairs, true}};
  gguf.meaning("tensor_data_layout", kLayouts, kPairs);
  return read_gated_gguf(gguf, vocab_size);
}

Parameters read_parameters(const ModelConfig& config, ParameterSource& source) {
  return read_gated_parameters(config, source,
                               {.attention_bias = config.attention_bias,
                                .output_bias = config.attention_bias,
                                .feed_forward_bias = config.feed_forward_bias,
                                .pairs_in_gguf = true});
}

}  // namespace

Family llama() { return {"llama", read_config, no_prefix, read_parameters, "llama", read_gguf}; }

Family mistral() { return {"mistral", read_mistral, no_prefix, read_parameters}; }

}  // namespace clearhead::model
