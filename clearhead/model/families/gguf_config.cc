// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/families/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "clearhead/base/error.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::model {

std::string GgufConfig::name(std::string_view key) {
  std::string full = prefix_ + std::string(key);
  read_.insert(full);
  return full;
}

size_t GgufConfig::checked(std::string_view full, size_t value) const {
  if (value <= ConfigJson::kMaxCount) return value;
  base::fail(where(), fmt::format("{} from 0 to {}", base::quoted(full), ConfigJson::kMaxCount),
             fmt::format("{}", value));
}

size_t GgufConfig::count(std::string_view key, std::optional<size_t> fallback) {
  const std::string full = name(key);
  const auto found = metadata_.find_count(full);
  if (!found && fallback) return *fallback;
  return checked(full, found ? *found : metadata_.count(full));
}

size_t GgufConfig::same_count(std::string_view key, size_t num_layers, std::optional<size_t> fallback) {
  const std::string full = name(key);
  if (!metadata_.is_array(full)) return count(key, fallback);
  const std::vector<int64_t> counts = *metadata_.find_integers(full);
  if (counts.empty() || counts.size() != num_layers) {
    base::fail(where(), fmt::format("{} once or for each of {} layers", base::quoted(full), num_layers),
               fmt::format("{} numbers", counts.size()));
  }
  const auto other = std::ranges::find_if(counts, [&](int64_t each) { return each != counts[0]; });
  if (other != counts.end()) {
    base::fail(where(), fmt::format("{} that is the same in every layer", base::quoted(full)),
               fmt::format("{} in layer 0 and {} in layer {}", counts[0], *other, other - counts.begin()),
               "this kind of model is not supported");
  }
  if (counts[0] < 0)
    base::fail(where(), fmt::format("{} of 0 or more", base::quoted(full)), fmt::format("{}", counts[0]));
  return checked(full, static_cast<size_t>(counts[0]));
}

double GgufConfig::number(std::string_view key, std::optional<double> fallback) {
  const std::string full = name(key);
  const auto found = metadata_.find_number(full);
  if (found) return *found;
  if (fallback) return *fallback;
  base::fail(where(), fmt::format("{} in the metadata", base::quoted(full)), "none");
}

bool GgufConfig::flag(std::string_view key, std::optional<bool> fallback) {
  const std::string full = name(key);
  const auto found = metadata_.find_flag(full);
  if (found) return *found;
  if (fallback) return *fallback;
  base::fail(where(), fmt::format("{} in the metadata", base::quoted(full)), "none");
}

std::optional<std::vector<bool>> GgufConfig::flags(std::string_view key) {
  const std::string full = name(key);
  return metadata_.is_array(full) ? metadata_.find_flags(full) : std::nullopt;
}

bool GgufConfig::contains(std::string_view key) { return metadata_.contains(name(key)); }

void GgufConfig::require(std::string_view key, size_t only) {
  const size_t found = count(key, only);
  if (found == only) return;
  base::fail(where(), fmt::format("{} of {}", base::quoted(name(key)), only), fmt::format("{}", found),
             "this kind of model is not supported");
}

size_t GgufConfig::rows(std::string_view tensor) const {
  if (!checkpoint_.contains(tensor)) return 0;
  const tensor::Shape& shape = checkpoint_.entry(tensor).shape;
  return shape.rank() == 2 ? shape[0] : 0;
}

std::optional<std::vector<double>> GgufConfig::numbers(std::string_view tensor) const {
  if (!checkpoint_.contains(tensor)) return std::nullopt;
  const format::TensorEntry& entry = checkpoint_.entry(tensor);
  if (entry.shape.rank() != 1 || entry.block_type || !tensor::is_floating(checkpoint_.view(tensor).dtype())) {
    base::fail(where(), fmt::format("{} to be a list of F32, F16 or BF16", base::quoted(tensor)),
               fmt::format("{} of shape {}", entry.dtype_name, entry.shape.text()));
  }
  const tensor::Tensor values = tensor::to_dtype(checkpoint_.view(tensor), tensor::DType::f32);
  return std::vector<double>(values.as<float>().begin(), values.as<float>().end());
}

void GgufConfig::refuse_value(std::string_view full, std::string_view known, std::string_view found) const {
  base::fail(where(), fmt::format("{} to be one of: {}", base::quoted(full), known), base::quoted(found));
}

void GgufConfig::refuse_unread() const {
  for (const auto& [key, value] : metadata_.values()) {
    if (!key.starts_with(prefix_) || read_.contains(key)) continue;
    base::fail(where(), "keys that this model family knows", base::quoted(key), "this kind of model is not supported");
  }
}

ModelConfig read_sizes_gguf(GgufConfig& gguf, size_t vocab_size, bool causal) {
  ModelConfig config;
  config.vocab_size = vocab_size;
  config.context_len = gguf.count("context_length");
  config.num_layers = gguf.count("block_count");
  config.d_model = gguf.count("embedding_length");
  config.d_ff = gguf.same_count("feed_forward_length", config.num_layers);
  if (config.d_ff == 0) base::fail(gguf.where(), "a feed_forward_length of 1 or more", "0");
  const size_t heads = gguf.same_count("attention.head_count", config.num_layers);
  if (heads == 0 || (!gguf.contains("attention.key_length") && config.d_model % heads != 0)) {
    base::fail(gguf.where(), "an attention.head_count that divides embedding_length",
               fmt::format("{} heads and {}", heads, config.d_model));
  }
  config.attention.num_heads = heads;
  config.attention.num_kv_heads = gguf.same_count("attention.head_count_kv", config.num_layers, heads);
  config.attention.head_dim = gguf.count("attention.key_length", config.d_model / heads);
  config.attention.value_dim = gguf.count("attention.value_length", config.attention.head_dim);
  if (gguf.contains("attention.scale")) config.attention.scale = static_cast<float>(gguf.number("attention.scale"));
  // Where no key says so, a text is read from the front.
  if (gguf.flag("attention.causal", true) != causal) {
    base::fail(gguf.where(), fmt::format("attention.causal to be {}", causal),
               causal ? "false" : "true, which is what a file without it means");
  }
  if (causal) config.attention.causal = attention::Causal::top_left;
  for (const char* key :
       {"expert_count", "expert_used_count", "expert_group_count", "expert_group_used_count", "nextn_predict_layers"}) {
    gguf.require(key, 0);
  }
  gguf.require("embedding_length_out", config.d_model);
  gguf.ignore({"vocab_size"});  // the embedding says it
  // Of heads over a whole text, which are not computed.
  gguf.ignore({"pooling_type", "classifier.pooling_type", "classifier.output_labels"});
  return config;
}

}  // namespace clearhead::model
