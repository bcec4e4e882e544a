// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>

#include "clearhead/base/error.h"
#include "clearhead/model/families/gated_decoder.h"

namespace clearhead::model {
namespace {

RotaryScaling scaling_of(GgufConfig& gguf) {
  const std::string_view type = gguf.word("rope.scaling.type").value_or("none");
  if (type == "none") return RotaryScaling::none;
  if (type == "linear") return RotaryScaling::linear;
  if (type == "yarn") return RotaryScaling::yarn;
  base::fail(gguf.where(), "rope.scaling.type to be one of: none, linear, yarn", base::quoted(type));
}

RotaryConfig read_rotary_gguf(GgufConfig& gguf, size_t head_dim) {
  RotaryConfig rotary;
  rotary.dim = gguf.count("rope.dimension_count", head_dim);
  rotary.base = gguf.number("rope.freq_base", 10000);
  rotary.scaling = scaling_of(gguf);
  const double old_scale = gguf.number("rope.scale_linear", 1);  // before there was a type
  if (rotary.scaling == RotaryScaling::none && old_scale != 1) {
    rotary.scaling = RotaryScaling::linear;
    rotary.factor = old_scale;
  }
  rotary.factor = gguf.number("rope.scaling.factor", rotary.factor);
  rotary.original_len = gguf.count("rope.scaling.original_context_length", 0);
  if (gguf.contains("rope.scaling.attn_factor")) rotary.attention_factor = gguf.number("rope.scaling.attn_factor");
  rotary.beta_fast = gguf.number("rope.scaling.yarn_beta_fast", 32);
  rotary.beta_slow = gguf.number("rope.scaling.yarn_beta_slow", 1);
  gguf.ignore("rope.scaling.finetuned");  // where the file came from
  return rotary;
}

}  // namespace

std::string GgufConfig::name(std::string_view key) {
  std::string full = prefix_ + std::string(key);
  read_.insert(full);
  return full;
}

size_t GgufConfig::count(std::string_view key, std::optional<size_t> fallback) {
  const std::string full = name(key);
  const auto found = metadata_.find_count(full);
  if (!found && fallback) return *fallback;
  const size_t value = found ? *found : metadata_.count(full);
  if (value <= ConfigJson::kMaxCount) return value;
  base::fail(where(), fmt::format("{} from 0 to {}", base::quoted(full), ConfigJson::kMaxCount),
             fmt::format("{}", value));
}

double GgufConfig::number(std::string_view key, std::optional<double> fallback) {
  const std::string full = name(key);
  const auto found = metadata_.find_number(full);
  if (found) return *found;
  if (fallback) return *fallback;
  base::fail(where(), fmt::format("{} in the metadata", base::quoted(full)), "none");
}

std::optional<std::string_view> GgufConfig::word(std::string_view key) { return metadata_.find_word(name(key)); }
bool GgufConfig::contains(std::string_view key) { return metadata_.contains(name(key)); }

void GgufConfig::refuse_unread() const {
  for (const auto& [key, value] : metadata_.values()) {
    if (!key.starts_with(prefix_) || read_.contains(key)) continue;
    base::fail(where(), "keys that this model family knows", base::quoted(key), "this kind of model is not supported");
  }
}

ModelConfig read_gated_gguf(GgufConfig& gguf, size_t vocab_size) {
  ModelConfig config;
  config.vocab_size = vocab_size;
  config.context_len = gguf.count("context_length");
  config.num_layers = gguf.count("block_count");
  config.d_model = gguf.count("embedding_length");
  config.d_ff = gguf.count("feed_forward_length");
  if (config.d_ff == 0) base::fail(gguf.where(), "a feed_forward_length of 1 or more", "0");
  config.positions = Positions::none;
  config.norm_placement = NormPlacement::pre;
  config.norm_kind = NormKind::rms;
  config.norm_epsilon = static_cast<float>(gguf.number("attention.layer_norm_rms_epsilon"));
  config.activation = linear::Activation::silu;
  config.gated = true;
  const size_t heads = gguf.count("attention.head_count");
  if (heads == 0 || (!gguf.contains("attention.key_length") && config.d_model % heads != 0)) {
    base::fail(gguf.where(), "an attention.head_count that divides embedding_length",
               fmt::format("{} heads and {}", heads, config.d_model));
  }
  config.attention.num_heads = heads;
  config.attention.num_kv_heads = gguf.count("attention.head_count_kv", heads);
  config.attention.head_dim = gguf.count("attention.key_length", config.d_model / heads);
  config.attention.value_dim = gguf.count("attention.value_length", config.attention.head_dim);
  config.attention.causal = attention::Causal::top_left;
  if (gguf.contains("attention.scale")) config.attention.scale = static_cast<float>(gguf.number("attention.scale"));
  config.rotary = read_rotary_gguf(gguf, config.attention.head_dim);
  if (gguf.contains("attention.causal") && gguf.count("attention.causal") != 1) {
    base::fail(gguf.where(), "attention.causal to be true", "false");
  }
  gguf.ignore("vocab_size");  // the embedding says it
  return config;
}

}  // namespace clearhead::model
