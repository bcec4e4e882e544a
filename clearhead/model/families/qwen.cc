// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/families/family.h"
#include "clearhead/model/families/gated_decoder.h"

namespace clearhead::model {
namespace {

// The window of the upper layers, which counts only if it is switched on.
void read_windows(ConfigJson& json, ModelConfig& config) {
  const bool used = json.flag("use_sliding_window", false) && !json.is_null("sliding_window");
  const size_t first = json.count("max_window_layers", 28);
  const auto pattern = [&](size_t layer) { return used && layer >= first; };
  config.near.is_near = read_near_layers(json, config.num_layers, pattern);
  if (used) config.near.left_window = *read_left_window(json, "sliding_window", 4096);
  if (!used) config.near.is_near.clear();
  json.ignore({"sliding_window"});
}

ModelConfig read_qwen2(ConfigJson& json) {
  ModelConfig config =
      read_gated_config(json, {.vocab_size = 151936, .intermediate_size = 22016, .context_len = 32768});
  config.rotary = read_rotary(json, config.attention.head_dim, config.context_len);
  config.attention_bias = true;
  json.require("attention_bias", true);
  json.require("mlp_bias", false);
  read_windows(json, config);
  return config;
}

ModelConfig read_qwen3(ConfigJson& json) {
  ModelConfig config = read_gated_config(
      json, {.vocab_size = 151936, .intermediate_size = 22016, .head_dim = 128, .context_len = 32768});
  config.rotary = read_rotary(json, config.attention.head_dim, config.context_len);
  config.head_norm = true;
  config.attention_bias = json.flag("attention_bias", false);
  read_windows(json, config);
  return config;
}

ModelConfig read_qwen2_gguf(GgufConfig& gguf, size_t vocab_size) {
  ModelConfig config = read_gated_gguf(gguf, vocab_size);
  config.attention_bias = true;
  return config;
}

ModelConfig read_qwen3_gguf(GgufConfig& gguf, size_t vocab_size) {
  ModelConfig config = read_gated_gguf(gguf, vocab_size);
  config.head_norm = true;
  return config;
}

Parameters read_qwen2_parameters(const ModelConfig& config, ParameterSource& source) {
  return read_gated_parameters(config, source, {.attention_bias = true});
}

Parameters read_qwen3_parameters(const ModelConfig& config, ParameterSource& source) {
  return read_gated_parameters(config, source,
                               {.attention_bias = config.attention_bias, .output_bias = config.attention_bias});
}

}  // namespace

Family qwen2() { return {"qwen2", read_qwen2, no_prefix, read_qwen2_parameters, "qwen2", read_qwen2_gguf}; }

Family qwen3() { return {"qwen3", read_qwen3, no_prefix, read_qwen3_parameters, "qwen3", read_qwen3_gguf}; }

}  // namespace clearhead::model
