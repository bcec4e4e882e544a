// SPDX-License-Identifier: Apache-2.0
// Configs as checkpoints in use are published with: data/published_configs.json has their keys and values, by name.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "clearhead/model/families/family.h"
#include "clearhead/model/harmless_keys.h"
#include "tests/support/error_text.h"

namespace clearhead::model {
namespace {

using nlohmann::json;
using tests::error_text;

const json& published() {
  static const json all =
      json::parse(std::ifstream(std::filesystem::path(CLEARHEAD_TEST_DATA) / "published_configs.json"));
  return all;
}

std::string refusal(const json& config) {
  return error_text([&] { read_hub_config(config.dump(), "config.json"); });
}

// One published config of each family that reads text.
std::set<std::string> one_of_each() {
  std::set<std::string> types, names;
  for (const auto& [name, config] : published().items()) {
    if (types.insert(config["model_type"].get<std::string>()).second) names.insert(name);
  }
  return names;
}

TEST(PublishedConfigs, AllAreRead) {
  for (const auto& entry : published().items()) {
    const json& config = entry.value();  // clang 16 lets no lambda capture a structured binding under OpenMP
    SCOPED_TRACE(entry.key());
    ASSERT_EQ(refusal(config), "no error");
    const ReadConfig read = read_hub_config(config.dump(), "config.json");
    const auto first = [&](const char* key, const char* other) {
      return config.contains(key) ? config[key].get<size_t>() : config[other].get<size_t>();
    };
    EXPECT_EQ(read.config.family, config["model_type"].get<std::string>());
    EXPECT_EQ(read.config.num_layers,
              config.contains("n_layers") ? config["n_layers"].get<size_t>() : first("num_hidden_layers", "n_layer"));
    EXPECT_EQ(read.config.vocab_size, config["vocab_size"].get<size_t>());
    EXPECT_EQ(read.end_ids.empty(), !config.contains("eos_token_id"));
  }
  EXPECT_EQ(one_of_each().size(), families().size() - 2);  // all but those of images
}

TEST(PublishedConfigs, WhatOtherSettingsWouldChangeIsRefusedByName) {
  struct Change {
    const char *name, *key;
    json value;
    const char* complaint;
  };
  const std::vector<Change> changes = {
      {"Qwen/Qwen2.5-0.5B", "use_mrope", true, "expected use_mrope to be false (switched off); found true"},
      {"Qwen/Qwen2.5-0.5B", "attention_bias", false, "expected attention_bias to be one of: true"},
      {"Qwen/Qwen2.5-0.5B", "dual_chunk_attention_config", json::object(), "\"dual_chunk_attention_config\""},
      {"HuggingFaceTB/SmolLM2-135M-Instruct", "rope_interleaved", true, "expected rope_interleaved to be false"},
      {"HuggingFaceTB/SmolLM2-135M-Instruct", "is_llama_config", false, "expected is_llama_config to be true"},
      {"HuggingFaceTB/SmolLM2-135M-Instruct", "is_causal", false, "\"is_causal\""},
      {"google-bert/bert-base-chinese", "directionality", "left", "expected directionality to be one of: bidi"},
      {"google-bert/bert-base-chinese", "add_cross_attention", true, "add_cross_attention"},
      {"google-bert/bert-base-chinese", "embedding_size", 128, "\"embedding_size\""},
      {"google/gemma-2-9b", "sliding_window_size", 512, "expected a sliding_window_size of 4096, as sliding_window is"},
      {"google/gemma-3-270m", "use_bidirectional_attention", true, "use_bidirectional_attention"},
      {"mistralai/Mistral-7B-v0.1", "attention_bias", true, "expected attention_bias to be one of: false"},
      {"mistralai/Mistral-7B-v0.1", "pruned_heads", {{"1", {0}}}, "expected pruned_heads to be {}"},
      {"EleutherAI/pythia-70m", "tie_encoder_decoder", true, "expected tie_encoder_decoder to be false"},
  };
  for (const Change& change : changes) {
    json config = published().at(change.name);
    config[change.key] = change.value;
    EXPECT_NE(refusal(config).find(change.complaint), std::string::npos) << change.name << ": " << refusal(config);
  }
}

TEST(PublishedConfigs, QuantizedOnesAndThoseWithCodeAreRefusedInEveryFamily) {
  for (const std::string& name : one_of_each()) {
    for (const RefusedKey& row : refused_keys()) {
      json config = published().at(name);
      config[row.key] = {{"quant_method", "gptq"}, {"AutoModel", "modeling.Model"}};
      const std::string complaint = refusal(config);
      EXPECT_NE(complaint.find(row.key), std::string::npos) << name << complaint;
      EXPECT_NE(complaint.find(row.advice), std::string::npos) << name << complaint;
      config[row.key] = nullptr;
      EXPECT_EQ(refusal(config), "no error") << name;
    }
  }
}

TEST(PublishedConfigs, HarmlessKeysHaveOneReasonAndWithAValueNoOther) {
  std::set<std::string_view> seen;
  for (const HarmlessKey& row : harmless_keys()) {
    EXPECT_TRUE(seen.insert(row.key).second) << row.key;
    EXPECT_FALSE(row.reason.empty()) << row.key;
    json config = published().at("EleutherAI/pythia-70m");
    config[row.key] = row.only.empty() ? json({1, {{"anything", nullptr}}}) : json::parse(row.only);
    EXPECT_EQ(refusal(config), "no error") << row.key;
    if (row.only.empty()) continue;
    config[row.key] = "another";
    const std::string complaint = refusal(config);
    EXPECT_NE(complaint.find(fmt::format("expected {} to be {}", row.key, row.only)), std::string::npos) << complaint;
  }
}

}  // namespace
}  // namespace clearhead::model
