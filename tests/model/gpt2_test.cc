// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "clearhead/model/families/family.h"
#include "clearhead/tensor/compare.h"
#include "tests/model/tensor_bag.h"
#include "tests/support/error_text.h"
#include "tests/support/stage_collector.h"

namespace clearhead::model {
namespace {

using tests::error_text;

constexpr size_t kVocab = 100, kPositions = 40, kWidth = 32, kLayers = 2, kHeads = 4;
constexpr double kWeightTolerance = 2e-5, kHiddenTolerance = 5e-5, kLogitTolerance = 2e-4;
const std::string kPrefix = "transformer.";
const std::vector<int64_t> kIds = {3, 99, 0, 41, 41, 7};

// The small model of golden/make_gpt2_golden.py, as transformers saved it.
std::shared_ptr<const format::Checkpoint> saved() {
  const std::filesystem::path folder = std::filesystem::path(CLEARHEAD_TEST_DATA) / "gpt2";
  return std::make_shared<const format::Checkpoint>(format::Checkpoint::open(folder));
}

void fill_saved(TensorBag& bag) {
  const auto checkpoint = saved();
  for (const std::string& name : checkpoint->names()) bag.put(name, tensor::clone(checkpoint->view(name)));
}

std::string saved_config() { return std::string(saved()->config_json()); }

class Gpt2Golden : public testing::TestWithParam<const char*> {};

TEST_P(Gpt2Golden, AllHeadsTheHiddenStateAndTheLogitsAreThoseOfPyTorch) {
  const format::SafetensorsFile file = format::SafetensorsFile::open(std::filesystem::path(CLEARHEAD_TEST_DATA) /
                                                                     fmt::format("gpt2_{}.safetensors", GetParam()));
  const tensor::Tensor ids = tensor::clone(file.view("ids"));
  const size_t seq = ids.elements();
  const LoadedModel model = load_model(saved());
  EXPECT_TRUE(model.warnings.empty());
  tests::StageCollector collector({capture::Stage::weights});
  const tensor::Tensor hidden = model.transformer.run({ids.as<int64_t>(), {}}, &collector);
  tensor::Tensor weights(tensor::Shape{kLayers, kHeads, seq, seq});
  for (size_t layer = 0; layer < kLayers; ++layer) {
    const auto seen = collector.get(capture::Stage::weights, layer).as<float>();
    std::ranges::copy(seen, weights.as<float>().subspan(layer * seen.size()).begin());
  }
  const double weights_drift = tensor::compare(weights, file.view("weights")).max_abs;
  const double hidden_drift =
      tensor::compare(tensor::clone(hidden).reshaped({seq, kWidth}), file.view("hidden")).max_abs;
  const tensor::Tensor logits = model.transformer.logits(hidden.as<float>().last(kWidth));
  const double logit_drift = tensor::compare(tensor::clone(logits).reshaped({kVocab}), file.view("logits")).max_abs;
  RecordProperty("weights", fmt::format("{:.2e}", weights_drift));
  RecordProperty("hidden", fmt::format("{:.2e}", hidden_drift));
  RecordProperty("logits", fmt::format("{:.2e}", logit_drift));
  EXPECT_LE(weights_drift, kWeightTolerance);
  EXPECT_LE(hidden_drift, kHiddenTolerance);
  EXPECT_LE(logit_drift, kLogitTolerance);
  for (size_t i = 0; i < weights.elements(); ++i) {
    const size_t query = i / seq % seq, key = i % seq;
    if (key <= query) continue;
    ASSERT_EQ(weights.as<float>()[i], 0) << "query " << query << " sees key " << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Texts, Gpt2Golden, testing::Values("one_token", "nine_tokens", "all_positions"),
                         [](const auto& text) { return std::string(text.param); });

TEST(Gpt2, NamesWithoutPrefixBuffersAndAHeadAreUnderstood) {
  const LoadedModel original = load_model(saved());
  const tensor::Tensor truth = original.transformer.run({kIds, {}});
  const std::span<const float> last = truth.as<float>().last(kWidth);
  for (const std::string& prefix : {std::string(), kPrefix}) {
    TensorBag bag, prefixed;
    fill_saved(prefixed);
    for (const auto& [name, values] : prefixed.tensors()) {
      bag.put(prefix + name.substr(kPrefix.size()), tensor::clone(values));
    }
    for (size_t layer = 0; layer < kLayers; ++layer) {
      const std::string attention = fmt::format("{}h.{}.attn.", prefix, layer);
      bag.put(attention + "bias", tensor::Tensor(tensor::DType::u8, {1, 1, kPositions, kPositions}));
      bag.add(attention + "masked_bias", {1});
    }
    bag.add("lm_head.weight", {kVocab, kWidth});
    const LoadedModel model = load_model(bag.checkpoint(saved_config()));
    EXPECT_TRUE(model.warnings.empty()) << model.warnings[0];
    EXPECT_TRUE(tensor::same_bits(model.transformer.run({kIds, {}}), truth)) << "prefix \"" << prefix << "\"";
    // The stored head is the embedding once more: what stands there does not count.
    EXPECT_TRUE(tensor::same_bits(model.transformer.logits(last), original.transformer.logits(last))) << prefix;
  }
}

TEST(Gpt2, AHeadThatIsNotTheEmbeddingIsReadAndABodyHasNone) {
  const std::string tied = R"("tie_word_embeddings": true)", untied = R"("tie_word_embeddings": false)";
  std::string config = saved_config();
  config.replace(config.find(tied), tied.size(), untied);
  const LoadedModel original = load_model(saved());
  const tensor::Tensor hidden = original.transformer.run({kIds, {}});
  const std::span<const float> last = hidden.as<float>().last(kWidth);
  TensorBag bag;
  fill_saved(bag);
  EXPECT_FALSE(load_model(bag.checkpoint(config)).transformer.has(capture::Stage::logits));
  bag.put("lm_head.weight", tensor::clone(saved()->view(kPrefix + "wte.weight")));
  const tensor::Tensor same = load_model(bag.checkpoint(config)).transformer.logits(last);
  EXPECT_TRUE(tensor::same_bits(same, original.transformer.logits(last)));
  bag.add("lm_head.weight", {kVocab, kWidth});
  const tensor::Tensor other = load_model(bag.checkpoint(config)).transformer.logits(last);
  EXPECT_FALSE(tensor::same_bits(other, same));
  bag.add("lm_head.weight", {kVocab + 1, kWidth});
  EXPECT_NE(error_text([&] { load_model(bag.checkpoint(config)); }).find("\"lm_head.weight\" of shape [100, 32]"),
            std::string::npos);
}

TEST(Gpt2, AMissingTensorAndOneOfAnotherShapeAreNamed) {
  TensorBag whole;
  fill_saved(whole);
  EXPECT_EQ(whole.tensors().size(), 4 + kLayers * 12);
  for (const auto& [name, values] : whole.tensors()) {
    if (name == kPrefix + "wte.weight") continue;  // tells whether there is a prefix
    TensorBag bag;
    fill_saved(bag);
    bag.remove(name);
    const std::string missing = error_text([&] { load_model(bag.checkpoint(saved_config())); });
    EXPECT_NE(missing.find("\"" + name + "\""), std::string::npos) << missing;
    bag.add(name, {3, 5});
    const std::string other = error_text([&] { load_model(bag.checkpoint(saved_config())); });
    EXPECT_NE(other.find("\"" + name + "\" of shape " + values.shape().text()), std::string::npos) << other;
  }
}

// A config.json of model_type gpt2 with these settings and nothing else.
std::string config_of(const std::map<std::string, std::string>& settings) {
  std::string text = "{\"model_type\": \"gpt2\"";
  for (const auto& [key, value] : settings) text += fmt::format(", \"{}\": {}", key, value);
  return text + "}";
}

ModelConfig read(const std::map<std::string, std::string>& settings) {
  ConfigJson json(config_of(settings), "config.json");
  ModelConfig config = gpt2().read_config(json);
  config.check();
  return config;
}

TEST(Gpt2, SettingsThatAreAbsentAreThoseOfGpt2Small) {
  const ModelConfig config = read({});
  EXPECT_EQ(config.vocab_size, 50257U);
  EXPECT_EQ(config.type_vocab_size, 0U);
  EXPECT_EQ(config.context_len, 1024U);
  EXPECT_EQ(config.num_layers, 12U);
  EXPECT_EQ(config.d_model, 768U);
  EXPECT_EQ(config.d_ff, 3072U);
  EXPECT_FALSE(config.embedding_norm);
  EXPECT_EQ(config.norm_placement, NormPlacement::pre);
  EXPECT_EQ(config.norm_epsilon, 1e-5f);
  EXPECT_EQ(config.activation, linear::Activation::gelu_tanh);
  EXPECT_EQ(config.attention.num_heads, 12U);
  EXPECT_EQ(config.attention.num_kv_heads, 12U);
  EXPECT_EQ(config.attention.head_dim, 64U);
  EXPECT_EQ(config.attention.value_dim, 64U);
  EXPECT_EQ(config.attention.causal, attention::Causal::top_left);
  EXPECT_FALSE(config.attention.scale.has_value());
}

TEST(Gpt2, SettingsThatArePresentCount) {
  EXPECT_EQ(read({{"n_embd", "36"}, {"n_inner", "null"}}).d_ff, 144U);
  EXPECT_EQ(read({{"n_inner", "7"}}).d_ff, 7U);
  EXPECT_EQ(read({{"n_positions", "5"}, {"n_ctx", "6"}}).context_len, 5U);
  EXPECT_EQ(read({{"layer_norm_epsilon", "0.5"}}).norm_epsilon, 0.5f);
  EXPECT_EQ(read({{"activation_function", "\"relu\""}}).activation, linear::Activation::relu);
}

struct BadSetting {
  const char *key, *value, *complaint;
};

class BadGpt2Config : public testing::TestWithParam<BadSetting> {};

TEST_P(BadGpt2Config, IsRefusedByName) {
  TensorBag bag;
  bag.add("nothing", {1});
  const std::string text = error_text([&] {
    load_model(bag.checkpoint(config_of({{GetParam().key, GetParam().value}})));
  });
  EXPECT_NE(text.find(GetParam().complaint), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(
    Settings, BadGpt2Config,
    testing::Values(
        BadSetting{"scale_attn_by_inverse_layer_idx", "true",
                   "expected scale_attn_by_inverse_layer_idx to be one of: false; found \"true\""},
        BadSetting{"reorder_and_upcast_attn", "true",
                   "expected reorder_and_upcast_attn to be one of: false; found \"true\""},
        BadSetting{"scale_attn_weights", "false", "expected scale_attn_weights to be one of: true; found \"false\""},
        BadSetting{"add_cross_attention", "true", "expected add_cross_attention to be one of: false; found \"true\""},
        BadSetting{"pruned_heads", "{\"1\": [0]}", "expected no pruned_heads; found an object"},
        BadSetting{"activation_function", "\"tanh\"",
                   "expected activation_function to be one of: gelu, gelu_fast, gelu_new, gelu_pytorch_tanh, relu, "
                   "silu, swish; found"},
        BadSetting{"n_head", "5", "expected n_head that divides n_embd; found 5 heads and n_embd 768"},
        BadSetting{"n_head", "0", "expected n_head that divides n_embd; found 0 heads and n_embd 768"},
        BadSetting{"n_embd", "0", "expected a d_model of 1 or more; found 0"},
        BadSetting{"n_inner", "0", "expected n_inner of 1 or more; found 0"},
        BadSetting{"n_layer", "0", "expected num_layers from 1 to 512; found 0"},
        BadSetting{"n_positions", "0", "expected a context_len of 1 or more"},
        BadSetting{"layer_norm_epsilon", "-1", "expected a norm_epsilon of 0 or more; found -1"},
        BadSetting{"hidden_size", "8", "expected keys that this model family knows; found \"hidden_size\""}));

}  // namespace
}  // namespace clearhead::model
