// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/families/family.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "clearhead/model/harmless_keys.h"
#include "tests/model/plain_twin.h"
#include "tests/model/tensor_bag.h"
#include "tests/model/tiny_bert.h"
#include "tests/support/error_text.h"

namespace clearhead::model {
namespace {

using namespace tiny;
using tests::error_text;

constexpr double kTolerance = 1e-5;  // floats of size 3 through two blocks

plain::Model plain_bert(const TensorBag& bag) {
  const auto linear = [&](const std::string& name) {
    return attention::ReferenceProjection{bag.doubles(name + ".weight"), bag.doubles(name + ".bias")};
  };
  const auto norm = [&](const std::string& name) {
    return plain::Norm{bag.doubles(name + ".weight"), bag.doubles(name + ".bias")};
  };
  plain::Model model;
  model.token_embedding = bag.doubles("embeddings.word_embeddings.weight");
  model.position_embedding = bag.doubles("embeddings.position_embeddings.weight");
  model.token_type_embedding = bag.doubles("embeddings.token_type_embeddings.weight");
  model.embedding_norm = norm("embeddings.LayerNorm");
  for (size_t layer = 0; layer < kLayers; ++layer) {
    const std::string name = fmt::format("encoder.layer.{}.", layer);
    plain::Block block;
    block.attention.query = linear(name + "attention.self.query");
    block.attention.key = linear(name + "attention.self.key");
    block.attention.value = linear(name + "attention.self.value");
    block.attention.output = linear(name + "attention.output.dense");
    block.attention_norm = norm(name + "attention.output.LayerNorm");
    block.feed_forward_in = linear(name + "intermediate.dense");
    block.feed_forward_out = linear(name + "output.dense");
    block.feed_forward_norm = norm(name + "output.LayerNorm");
    model.blocks.push_back(std::move(block));
  }
  return model;
}

double furthest(const tensor::Tensor& ours, const plain::Values& truth) {
  EXPECT_EQ(ours.elements(), truth.size());
  double largest = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(ours.as<float>()[i]) - truth[i]));
  }
  return largest;
}

const std::vector<int64_t> kIds = {3, 0, 10, 7, 7}, kTypeIds = {0, 0, 1, 1, 0};

// What loading complains of.
std::string refusal(const TensorBag& bag, const std::string& config) {
  return error_text([&] { load_model(bag.checkpoint(config)); });
}

TEST(Bert, ComputesWhatThePlainTwinComputes) {
  for (const char* activation : {"gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu", "swish"}) {
    TensorBag bag;
    fill_bert(bag);
    const LoadedModel model =
        load_model(bag.checkpoint(bert_config({{"hidden_act", fmt::format("\"{}\"", activation)}})));
    EXPECT_TRUE(model.warnings.empty());
    const tensor::Tensor hidden = model.transformer.run({kIds, kTypeIds});
    EXPECT_EQ(hidden.shape(), (tensor::Shape{1, 5, kWidth}));
    const plain::Values truth = plain::forward(model.transformer.config(), plain_bert(bag), kIds, kTypeIds);
    EXPECT_LE(furthest(hidden, truth), kTolerance) << activation;
  }
}

TEST(Bert, TokenTypesMatterAndAbsentOnesAreZero) {
  TensorBag bag;
  fill_bert(bag);
  const LoadedModel model = load_model(bag.checkpoint(bert_config()));
  const plain::Model twin = plain_bert(bag);
  const std::vector<int64_t> zeros(kIds.size(), 0);
  const plain::Values without = plain::forward(model.transformer.config(), twin, kIds);
  EXPECT_LE(furthest(model.transformer.run({kIds, {}}), without), kTolerance);
  EXPECT_LE(furthest(model.transformer.run({kIds, zeros}), without), kTolerance);
  EXPECT_GT(furthest(model.transformer.run({kIds, kTypeIds}), without), 0.01);
}

TEST(Bert, HalfPrecisionFilesAreReadExactly) {
  TensorBag bag, halves;
  fill_bert(bag);
  for (const auto& [name, values] : bag.tensors()) halves.put(name, tensor::to_dtype(values, tensor::DType::bf16));
  const LoadedModel model = load_model(halves.checkpoint(bert_config({{"torch_dtype", "\"bfloat16\""}})));
  for (const auto& [name, values] : halves.tensors()) bag.put(name, tensor::to_dtype(values, tensor::DType::f32));
  const plain::Values truth = plain::forward(model.transformer.config(), plain_bert(bag), kIds, kTypeIds);
  EXPECT_LE(furthest(model.transformer.run({kIds, kTypeIds}), truth), kTolerance);
}

TEST(Bert, APrefixLegacyNormNamesPoolerAndBuffersAreUnderstood) {
  TensorBag bag, legacy;
  fill_bert(bag);
  const plain::Model twin = plain_bert(bag);
  for (const auto& [name, values] : bag.tensors()) {
    std::string old = "bert." + name;
    if (const size_t at = old.find("LayerNorm.weight"); at != std::string::npos) old.replace(at + 10, 6, "gamma");
    if (const size_t at = old.find("LayerNorm.bias"); at != std::string::npos) old.replace(at + 10, 4, "beta");
    legacy.put(old, tensor::clone(values));
  }
  add_linear(legacy, "bert.pooler.dense", kWidth, kWidth);
  legacy.put("bert.embeddings.position_ids", tensor::Tensor(tensor::DType::i64, {1, kPositions}));
  const LoadedModel model = load_model(legacy.checkpoint(bert_config()));
  EXPECT_TRUE(model.warnings.empty());
  const plain::Values truth = plain::forward(model.transformer.config(), twin, kIds, kTypeIds);
  EXPECT_LE(furthest(model.transformer.run({kIds, kTypeIds}), truth), kTolerance);
}

TEST(Bert, TensorsThatNobodyUsesAreNamed) {
  TensorBag bag;
  fill_bert(bag);
  add_linear(bag, "cls.predictions", kVocab, kWidth);
  const LoadedModel model = load_model(bag.checkpoint(bert_config()));
  ASSERT_EQ(model.warnings.size(), 1U);
  EXPECT_EQ(model.warnings[0],
            R"(2 tensors of the model file are not used: "cls.predictions.bias", "cls.predictions.weight")");
}

TEST(Bert, AMissingTensorIsNamed) {
  TensorBag whole;
  fill_bert(whole);
  for (const auto& [name, values] : whole.tensors()) {
    TensorBag bag;
    fill_bert(bag);
    bag.remove(name);
    const std::string text = refusal(bag, bert_config());
    EXPECT_NE(text.find("\"" + name + "\""), std::string::npos) << name << ": " << text;
    EXPECT_NE(text.find("none of that name"), std::string::npos) << text;
  }
}

TEST(Bert, ATensorOfAnotherShapeIsNamed) {
  TensorBag whole;
  fill_bert(whole);
  for (const auto& [name, values] : whole.tensors()) {
    TensorBag bag;
    fill_bert(bag);
    bag.add(name, {3, 5});
    const std::string text = refusal(bag, bert_config());
    EXPECT_NE(text.find("\"" + name + "\" of shape " + values.shape().text()), std::string::npos) << text;
    EXPECT_NE(text.find("found shape [3, 5]"), std::string::npos) << text;
  }
}

TEST(Bert, ATensorOfWholeNumbersIsRefused) {
  TensorBag bag;
  fill_bert(bag);
  bag.put("encoder.layer.1.output.dense.bias", tensor::Tensor(tensor::DType::i32, {kWidth}));
  EXPECT_NE(
      refusal(bag, bert_config()).find("expected \"encoder.layer.1.output.dense.bias\" of a floating type; found I32"),
      std::string::npos);
}

struct BadSetting {
  const char *key, *value, *complaint;
};

class BadConfig : public testing::TestWithParam<BadSetting> {};

TEST_P(BadConfig, IsRefusedByName) {
  TensorBag bag;
  fill_bert(bag);
  const std::string text = refusal(bag, bert_config({{GetParam().key, GetParam().value}}));
  EXPECT_NE(text.find(GetParam().complaint), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Settings, BadConfig,
    testing::Values(
        BadSetting{"hidden_act", "\"swish9\"",
                   "expected hidden_act to be one of: gelu, gelu_fast, gelu_new, gelu_pytorch_tanh, relu, silu, swish; "
                   "found \"swish9\""},
        BadSetting{"hidden_act", "7", "expected hidden_act with a text; found 7"},
        BadSetting{"num_attention_heads", "3",
                   "expected num_attention_heads that divide hidden_size; found 3 heads and hidden_size 8"},
        BadSetting{"num_attention_heads", "0", "found 0 heads and hidden_size 8"},
        BadSetting{"num_attention_heads", "-2", "expected num_attention_heads with a whole number"},
        BadSetting{"num_attention_heads", "2.0", "expected num_attention_heads with a whole number"},
        BadSetting{"num_attention_heads", "99999999999999999999", "expected num_attention_heads with a whole number"},
        BadSetting{"vocab_size", "[11]", "expected vocab_size with a whole number from 0 to 2147483648; found a list"},
        BadSetting{"vocab_size", "0", "expected a vocab_size of 1 or more; found 0"},
        BadSetting{"hidden_size", "0", "expected a d_model of 1 or more; found 0"},
        BadSetting{"intermediate_size", "0", "expected intermediate_size of 1 or more; found 0"},
        BadSetting{"max_position_embeddings", "0", "expected a context_len of 1 or more"},
        BadSetting{"num_hidden_layers", "0", "expected num_layers from 1 to 512; found 0"},
        BadSetting{"num_hidden_layers", "100000", "expected num_layers from 1 to 512; found 100000"},
        BadSetting{"layer_norm_eps", "-1", "expected a norm_epsilon of 0 or more; found -1"},
        BadSetting{"layer_norm_eps", "1e300", "expected layer_norm_eps with a number"},
        BadSetting{"layer_norm_eps", "\"tiny\"", "expected layer_norm_eps with a number; found \"tiny\""},
        BadSetting{"model_type", "\"mamba\"",
                   "expected model_type to be one of: bert, roberta, xlm-roberta, distilbert, gpt2, llama, mistral, "
                   "qwen2, qwen3, gemma2, gemma3_text, gpt_neox, vit, "
                   "dinov2_with_registers; found \"mamba\""},
        BadSetting{"model_type", "", "expected model_type with a text; found none"},
        BadSetting{"position_embedding_type", "\"relative_key\"",
                   "expected position_embedding_type to be one of: absolute; found \"relative_key\""},
        BadSetting{"torch_dtype", "\"int4\"",
                   "expected torch_dtype to be one of: float32, float16, bfloat16, float64; found \"int4\""},
        BadSetting{"is_decoder", "true", "expected is_decoder to be one of: false; found \"true\""},
        BadSetting{"is_decoder", "1", "expected is_decoder true or false; found 1"},
        BadSetting{"add_cross_attention", "true", "expected add_cross_attention to be one of: false"},
        BadSetting{"pruned_heads", "{\"1\": [0]}", "expected no pruned_heads; found an object"},
        BadSetting{
            "quantization_config", "{\"bits\": 4}",
            "expected parameters in floats; found quantization_config: they are quantized; take the checkpoint in"},
        BadSetting{"a\\nb\\u001b[31m", "1", "found \"a\\x0ab\\x1b[31m\""}));

TEST(Config, HarmlessAndAbsentSettingsPass) {
  TensorBag bag;
  fill_bert(bag);
  std::map<std::string, std::string> settings = {
      {"pruned_heads", "{}"}, {"is_decoder", "false"},  {"layer_norm_eps", ""},          {"hidden_act", "null"},
      {"unheard_of", "null"}, {"dtype", "\"float32\""}, {"tie_word_embeddings", "true"},
  };
  for (const HarmlessKey& row : harmless_keys()) {
    EXPECT_FALSE(row.reason.empty());
    settings[std::string(row.key)] = row.only.empty() ? "[1, {\"anything\": null}]" : std::string(row.only);
  }
  const LoadedModel model = load_model(bag.checkpoint(bert_config(settings)));
  EXPECT_EQ(model.transformer.config().family, "bert");
  EXPECT_EQ(model.transformer.config().norm_epsilon, 1e-12f);
  EXPECT_EQ(model.transformer.config().activation, linear::Activation::gelu);
}

TEST(Config, AFamilyMayIgnoreKeysOfItsOwn) {
  ConfigJson json("{\"resid_pdrop\": 0.1, \"n_ctx\": 9}", "config.json");
  json.ignore({"resid_pdrop"});
  EXPECT_EQ(error_text([&] { json.refuse_unread(); }),
            "[config.json] expected keys that this model family knows; found \"n_ctx\"; if it does not change what the "
            "model computes, remove it from the file");
  json.ignore({"n_ctx", "not_there"});
  EXPECT_EQ(error_text([&] { json.refuse_unread(); }), "no error");
}

TEST(Config, OneObjectWithoutRepeatedKeysIsExpected) {
  const auto complaint = [](const char* text) { return error_text([&] { ConfigJson(text, "config.json"); }); };
  EXPECT_EQ(complaint("{\"a\": 1, "), "[config.json] expected a JSON object; found text that is not JSON");
  EXPECT_EQ(complaint(""), "[config.json] expected a JSON object; found text that is not JSON");
  EXPECT_EQ(complaint("[1, 2]"), "[config.json] expected a JSON object; found a list of 2");
  EXPECT_EQ(complaint("{\"a\": 1, \"a\": 2}"), "[config.json] expected each key once; found twice \"a\"");
  EXPECT_EQ(complaint("{\"b\": {\"a\": 1}, \"a\": 2}"), "no error");
  std::string deep;
  for (int i = 0; i < 200000; ++i) deep += "[";
  EXPECT_EQ(complaint(deep.c_str()), "[config.json] expected a JSON object; found text that is not JSON");
}

TEST(Transformer, InputThatDoesNotFitIsRefused) {
  TensorBag bag;
  fill_bert(bag);
  const LoadedModel model = load_model(bag.checkpoint(bert_config()));
  const auto complaint = [&](std::vector<int64_t> ids, std::vector<int64_t> types = {}) {
    return error_text([&] { model.transformer.run({ids, types}); });
  };
  EXPECT_EQ(complaint({}), "usage: [model] expected at least one token; found none");
  EXPECT_EQ(complaint({1, 11}),
            "usage: [model] expected token ids below 11, the rows of the embedding; found 11 at position 1; tokenizer "
            "and model do not belong together");
  EXPECT_NE(complaint({-1}).find("found -1 at position 0"), std::string::npos);
  EXPECT_NE(complaint({1, 2}, {0, 2}).find("expected token types below 2"), std::string::npos);
  EXPECT_EQ(complaint({1, 2}, {0}), "usage: [model] expected a token type for each of 2 tokens; found 1");
  EXPECT_EQ(complaint(std::vector<int64_t>(10, 1)),
            "usage: [model] expected at most 9 tokens, the positions of the model; found 10");
  EXPECT_EQ(complaint(std::vector<int64_t>(9, 1)), "no error");
}

}  // namespace
}  // namespace clearhead::model
