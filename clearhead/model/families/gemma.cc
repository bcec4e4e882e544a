// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/model/families/family.h"
#include "clearhead/model/families/gated_decoder.h"

namespace clearhead::model {
namespace {

constexpr size_t kNearLayersOfGemma3 = 5;  // then one that sees all
constexpr double kNearBase = 10000;

GatedDefaults defaults(size_t vocab_size, size_t context_len) {
  return {.vocab_size = vocab_size,
          .hidden_size = 2304,
          .intermediate_size = 9216,
          .num_layers = 26,
          .num_heads = 8,
          .num_kv_heads = 4,
          .head_dim = 256,
          .context_len = context_len,
          .activation_key = "hidden_activation",
          .activation = "gelu_pytorch_tanh",
          .tied = true};
}

// What both have, from whatever file.
void set_shared(ModelConfig& config) {
  config.norm_placement = NormPlacement::around;
  config.embedding_scale = std::sqrt(static_cast<float>(config.d_model));
}

void read_shared(ConfigJson& json, ModelConfig& config) {
  set_shared(config);
  const float divisor = json.number("query_pre_attn_scalar", 256.0f);
  if (!(divisor > 0)) base::fail(json.where(), "query_pre_attn_scalar above 0", fmt::format("{}", divisor));
  config.attention.scale = 1 / std::sqrt(divisor);
  config.attention_bias = json.flag("attention_bias", false);
  config.near.left_window = *read_left_window(json, "sliding_window", 4096);
  json.require("use_bidirectional_attention", false);
  json.ignore({"hidden_act"});  // an old name that peers do not read
}

std::optional<float> read_cap(ConfigJson& json, std::string_view key, std::optional<float> usual) {
  if (json.is_null(key) || (!usual && !json.contains(key))) return std::nullopt;
  return json.number(key, usual);
}

ModelConfig read_gemma2(ConfigJson& json) {
  ModelConfig config = read_gated_config(json, defaults(256000, 8192));
  read_shared(json, config);
  // A second name of the window, which peers do not read: the larger checkpoints have both.
  const size_t window = config.near.left_window + 1;
  if (const size_t named = json.count("sliding_window_size", window); named != window) {
    base::fail(json.where(), fmt::format("a sliding_window_size of {}, as sliding_window is", window),
               fmt::format("{}", named));
  }
  config.near.is_near = read_near_layers(json, config.num_layers, [](size_t layer) { return layer % 2 == 0; });
  config.attention.soft_cap = read_cap(json, "attn_logit_softcapping", 50.0f);
  config.logit_soft_cap = read_cap(json, "final_logit_softcapping", 30.0f);
  config.rotary = read_rotary(json, config.attention.head_dim, config.context_len);
  return config;
}

ModelConfig read_gemma3(ConfigJson& json) {
  ModelConfig config = read_gated_config(json, defaults(262208, 131072));
  read_shared(json, config);
  const size_t pattern =
      json.count("sliding_window_pattern", json.count("_sliding_window_pattern", kNearLayersOfGemma3 + 1));
  if (pattern == 0) base::fail(json.where(), "sliding_window_pattern of 1 or more", "0");
  config.near.is_near =
      read_near_layers(json, config.num_layers, [&](size_t layer) { return (layer + 1) % pattern != 0; });
  config.attention.soft_cap = read_cap(json, "attn_logit_softcapping", std::nullopt);
  config.logit_soft_cap = read_cap(json, "final_logit_softcapping", std::nullopt);
  config.head_norm = true;
  std::optional<ConfigJson> both = json.object("rope_parameters"), far, near;
  if (both) {
    far = both->object("full_attention");
    near = both->object("sliding_attention");
    both->refuse_unread();
  } else {
    far = json.object("rope_scaling");
  }
  const size_t head_dim = config.attention.head_dim;
  config.rotary =
      read_rotary(json, head_dim, config.context_len, 1'000'000, far ? std::move(far) : ConfigJson("{}", json.where()));
  config.near.rotary =
      RotaryConfig{.dim = head_dim, .base = json.number("rope_local_base_freq", static_cast<float>(kNearBase))};
  if (near) {
    config.near.rotary->base = near->number("rope_theta", static_cast<float>(config.near.rotary->base));
    constexpr Meaning<bool> kPlain[] = {{"default", true}};
    near->meaning("rope_type", kPlain, "default");
    near->refuse_unread();
  }
  return config;
}

// usual: the cap where the file has none; 0: none.
std::optional<float> gguf_cap(GgufConfig& gguf, std::string_view key, double usual) {
  const double cap = gguf.number(key, usual);
  if (cap == 0 && usual == 0) return std::nullopt;
  return static_cast<float>(cap);
}

// layers: the number of layers of the one size whose scale is not that of its heads; no key says so.
ModelConfig read_shared_gguf(GgufConfig& gguf, size_t vocab_size, size_t layers) {
  ModelConfig config = read_gated_gguf(gguf, vocab_size);
  set_shared(config);
  config.activation = linear::Activation::gelu_tanh;
  if (config.num_layers == layers && !config.attention.scale) {
    config.attention.scale = 1 / std::sqrt(static_cast<float>(config.d_model / config.attention.num_heads));
  }
  return config;
}

// Near layers: all but the last of each `period`, unless the file says otherwise.
void read_near_gguf(GgufConfig& gguf, size_t window, size_t period, NearLayers& near, size_t num_layers) {
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  near.left_window = window - 1;
  if (auto flags = gguf.flags(kPattern)) {
    if (flags->size() != num_layers) {
      base::fail(gguf.where(), fmt::format("{} of {} layers", kPattern, num_layers), fmt::format("{}", flags->size()));
    }
    near.is_near = std::move(*flags);
    return;
  }
  period = gguf.count(kPattern, period);
  near.is_near.resize(num_layers);
  for (size_t layer = 0; layer < num_layers; ++layer) {
    near.is_near[layer] = period == 0 || layer % period + 1 < period;
  }
}

ModelConfig read_gemma2_gguf(GgufConfig& gguf, size_t vocab_size) {
  constexpr size_t kLayersOf27b = 46;
  ModelConfig config = read_shared_gguf(gguf, vocab_size, kLayersOf27b);
  const size_t window = gguf.count("attention.sliding_window", 4096);
  if (window == 0) base::fail(gguf.where(), "an attention.sliding_window of 1 or more", "0");
  read_near_gguf(gguf, window, 2, config.near, config.num_layers);
  if (gguf.contains("rope.freq_base_swa")) {
    config.near.rotary = config.rotary;
    config.near.rotary->base = gguf.number("rope.freq_base_swa");
  }
  config.attention.soft_cap = gguf_cap(gguf, "attn_logit_softcapping", 50);
  config.logit_soft_cap = gguf_cap(gguf, "final_logit_softcapping", 30);
  return config;
}

ModelConfig read_gemma3_gguf(GgufConfig& gguf, size_t vocab_size) {
  constexpr size_t kLayersOf27b = 62;
  ModelConfig config = read_shared_gguf(gguf, vocab_size, kLayersOf27b);
  config.head_norm = true;
  config.attention.soft_cap = gguf_cap(gguf, "attn_logit_softcapping", 0);
  config.logit_soft_cap = gguf_cap(gguf, "final_logit_softcapping", 0);
  RotaryConfig near{.dim = config.rotary->dim, .base = gguf.number("rope.freq_base_swa", kNearBase)};
  if (const double attention = gguf.number("rope.scaling.attn_factor", 1); attention != 1) {
    near.attention_factor = attention;
  }
  const size_t window = gguf.count("attention.sliding_window", 0);
  if (window == 0) {  // every layer sees all
    gguf.ignore({"attention.sliding_window_pattern"});
    return config;
  }
  read_near_gguf(gguf, window, kNearLayersOfGemma3 + 1, config.near, config.num_layers);
  config.near.rotary = near;
  return config;
}

Parameters read_parameters(const ModelConfig& config, ParameterSource& source) {
  return read_gated_parameters(config, source,
                               {.attention_bias = config.attention_bias,
                                .output_bias = config.attention_bias,
                                .norm_offset = 1,
                                .norms_around = true});
}

}  // namespace

Family gemma2() { return {"gemma2", read_gemma2, no_prefix, read_parameters, "gemma2", read_gemma2_gguf}; }

Family gemma3() { return {"gemma3_text", read_gemma3, no_prefix, read_parameters, "gemma3", read_gemma3_gguf}; }

}  // namespace clearhead::model
