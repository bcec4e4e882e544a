// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "clearhead/base/error.h"
#include "clearhead/model/families/family.h"
#include "clearhead/model/families/gated_decoder.h"

namespace clearhead::model {
namespace {

constexpr Meaning<RotaryScaling> kScalings[] = {
    {"default", RotaryScaling::none}, {"linear", RotaryScaling::linear}, {"dynamic", RotaryScaling::dynamic},
    {"yarn", RotaryScaling::yarn},    {"llama3", RotaryScaling::llama3}, {"longrope", RotaryScaling::longrope},
    {"su", RotaryScaling::longrope},
};

std::optional<double> optional_number(ConfigJson& json, std::string_view key) {
  if (!json.contains(key)) return std::nullopt;
  return json.number(key);
}

// What kind says about the settings of rotary positions. context_len: of the config.
void read_scaling(ConfigJson& settings, size_t context_len, RotaryConfig& rotary) {
  const bool old_name = !settings.contains("rope_type") && settings.contains("type");
  rotary.scaling = settings.meaning(old_name ? "type" : "rope_type", kScalings, "default");
  settings.ignore({"type"});       // the old name of rope_type, which newer files have beside it
  settings.ignore({"finetuned"});  // whether the model was trained further at that length
  if (rotary.scaling == RotaryScaling::none) return;
  rotary.original_len = settings.count("original_max_position_embeddings", rotary.original_len);
  if (rotary.original_len == 0) rotary.original_len = context_len;
  const bool implied = rotary.scaling == RotaryScaling::longrope || rotary.scaling == RotaryScaling::yarn;
  const float ratio = static_cast<float>(context_len) / static_cast<float>(std::max<size_t>(rotary.original_len, 1));
  rotary.factor = implied ? settings.number("factor", ratio) : settings.number("factor");
  if (implied) rotary.attention_factor = optional_number(settings, "attention_factor");
  if (rotary.scaling == RotaryScaling::llama3) {
    rotary.low_factor = settings.number("low_freq_factor");
    rotary.high_factor = settings.number("high_freq_factor");
  }
  if (rotary.scaling == RotaryScaling::yarn) {
    rotary.beta_fast = settings.number("beta_fast", 32.0f);
    rotary.beta_slow = settings.number("beta_slow", 1.0f);
    rotary.whole_ramp = settings.flag("truncate", true);
    rotary.mscale = settings.number("mscale", 0.0f);
    rotary.mscale_all_dim = settings.number("mscale_all_dim", 0.0f);
  }
  if (rotary.scaling == RotaryScaling::longrope) {
    rotary.short_factors = settings.numbers("short_factor").value_or(std::vector<double>{});
    rotary.long_factors = settings.numbers("long_factor").value_or(std::vector<double>{});
  }
}

}  // namespace

RotaryConfig read_rotary(ConfigJson& json, size_t head_dim, size_t context_len, double base,
                         std::optional<ConfigJson> parameters) {
  RotaryConfig rotary;
  rotary.base = json.number("rope_theta", static_cast<float>(base));
  float part = json.number("partial_rotary_factor", 1.0f);
  rotary.original_len = json.count("original_max_position_embeddings", 0);
  auto named = json.object("rope_parameters"), scaling = json.object("rope_scaling");
  if (!parameters) parameters = named ? std::move(named) : std::move(scaling);
  if (parameters) {
    rotary.base = parameters->number("rope_theta", static_cast<float>(rotary.base));
    part = parameters->number("partial_rotary_factor", part);
    read_scaling(*parameters, context_len, rotary);
    parameters->refuse_unread();
  }
  if (!(part > 0 && part <= 1)) {
    base::fail(json.where(), "partial_rotary_factor above 0 and at most 1", fmt::format("{}", part));
  }
  rotary.dim = static_cast<size_t>(static_cast<float>(head_dim) * part);
  return rotary;
}

ModelConfig read_gated_config(ConfigJson& json, const GatedDefaults& defaults) {
  const size_t d_model = json.count("hidden_size", defaults.hidden_size);
  const size_t heads = json.count("num_attention_heads", defaults.num_heads);
  const bool has_head_dim = defaults.head_dim.has_value() || json.contains("head_dim");
  if (heads == 0 || (!has_head_dim && d_model % heads != 0)) {
    base::fail(json.where(), "num_attention_heads that divide hidden_size, or a head_dim",
               fmt::format("{} heads and hidden_size {}", heads, d_model));
  }
  ModelConfig config;
  config.vocab_size = json.count("vocab_size", defaults.vocab_size);
  config.context_len = json.count("max_position_embeddings", defaults.context_len);
  config.num_layers = json.count("num_hidden_layers", defaults.num_layers);
  config.d_model = d_model;
  config.d_ff = json.count("intermediate_size", defaults.intermediate_size);
  if (config.d_ff == 0) base::fail(json.where(), "intermediate_size of 1 or more", "0");
  config.positions = Positions::none;
  config.norm_placement = NormPlacement::pre;
  config.norm_kind = NormKind::rms;
  config.norm_epsilon = json.number("rms_norm_eps", defaults.norm_epsilon);
  config.activation = json.meaning(defaults.activation_key, kActivations, defaults.activation);
  config.gated = true;
  config.tied_vocabulary = json.flag("tie_word_embeddings", defaults.tied);
  config.attention.num_heads = heads;
  config.attention.num_kv_heads = json.count("num_key_value_heads", defaults.num_kv_heads.value_or(heads));
  const size_t head_dim = json.count("head_dim", defaults.head_dim.value_or(d_model / heads));
  config.attention.head_dim = config.attention.value_dim = head_dim;
  config.attention.causal = attention::Causal::top_left;
  json.require("is_encoder_decoder", false);
  json.ignore({"attention_dropout", "is_decoder"});  // training only; how another library uses it
  json.ignore({"pretraining_tp"});                   // how another library computes the same
  return config;
}

std::vector<bool> read_near_layers(ConfigJson& json, size_t num_layers, const std::function<bool(size_t)>& pattern) {
  std::vector<bool> is_near(num_layers);
  for (size_t layer = 0; layer < num_layers; ++layer) is_near[layer] = pattern(layer);
  const auto types = json.words("layer_types");
  if (!types) return is_near;
  if (types->size() != num_layers) {
    base::fail(json.where(), fmt::format("layer_types of {} layers", num_layers), fmt::format("{}", types->size()));
  }
  for (size_t layer = 0; layer < num_layers; ++layer) {
    const std::string& type = (*types)[layer];
    if (type != "full_attention" && type != "sliding_attention") {
      json.refuse_value("layer_types", "full_attention, sliding_attention", type);
    }
    is_near[layer] = type == "sliding_attention";
  }
  return is_near;
}

std::optional<size_t> read_left_window(ConfigJson& json, std::string_view key, std::optional<size_t> fallback) {
  if (!json.contains(key) && !fallback) return std::nullopt;
  const size_t window = json.count(key, fallback);
  if (window == 0) base::fail(json.where(), fmt::format("{} of 1 or more, or none", key), "0");
  return window - 1;  // the query's own position is one of them
}

std::string no_prefix(const format::Checkpoint&) { return ""; }

}  // namespace clearhead::model
