// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>

#include "tests/model/tensor_bag.h"

namespace clearhead::model::tiny {

constexpr size_t kVocab = 11, kTypes = 2, kPositions = 9, kWidth = 8, kWide = 12, kLayers = 2;

// A config.json of a small BERT; settings are further lines, or replace a line that has the same key.
inline std::string bert_config(const std::map<std::string, std::string>& settings = {}) {
  std::map<std::string, std::string> lines = {{"model_type", "\"bert\""}, {"vocab_size", "11"},
                                              {"type_vocab_size", "2"},   {"max_position_embeddings", "9"},
                                              {"hidden_size", "8"},       {"num_attention_heads", "2"},
                                              {"num_hidden_layers", "2"}, {"intermediate_size", "12"},
                                              {"hidden_act", "\"gelu\""}, {"layer_norm_eps", "1e-12"}};
  for (const auto& [key, value] : settings) lines[key] = value;
  std::string text;
  for (const auto& [key, value] : lines) {
    if (!value.empty()) text += fmt::format("{}\"{}\": {}", text.empty() ? "{" : ", ", key, value);
  }
  return text + "}";
}

inline void add_linear(TensorBag& bag, const std::string& name, size_t outputs, size_t inputs) {
  bag.add(name + ".weight", {outputs, inputs});
  bag.add(name + ".bias", {outputs});
}

inline void add_norm(TensorBag& bag, const std::string& name) {
  bag.add(name + ".weight", {kWidth}, 0.3f, 1);
  bag.add(name + ".bias", {kWidth});
}

inline void fill_bert(TensorBag& bag) {
  bag.add("embeddings.word_embeddings.weight", {kVocab, kWidth}, 1);
  bag.add("embeddings.position_embeddings.weight", {kPositions, kWidth}, 1);
  bag.add("embeddings.token_type_embeddings.weight", {kTypes, kWidth}, 1);
  add_norm(bag, "embeddings.LayerNorm");
  for (size_t layer = 0; layer < kLayers; ++layer) {
    const std::string block = fmt::format("encoder.layer.{}.", layer);
    for (const char* role : {"query", "key", "value"})
      add_linear(bag, block + "attention.self." + role, kWidth, kWidth);
    add_linear(bag, block + "attention.output.dense", kWidth, kWidth);
    add_norm(bag, block + "attention.output.LayerNorm");
    add_linear(bag, block + "intermediate.dense", kWide, kWidth);
    add_linear(bag, block + "output.dense", kWidth, kWide);
    add_norm(bag, block + "output.LayerNorm");
  }
}

}  // namespace clearhead::model::tiny
