// SPDX-License-Identifier: Apache-2.0
// roberta, xlm-roberta and distilbert: small encoders of random parameters as transformers saved them, against its
// eager attention (golden/make_small_encoder_golden.py).
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "clearhead/model/embedding.h"
#include "clearhead/model/families/family.h"
#include "tests/model/encoder_golden.h"
#include "tests/model/tensor_bag.h"
#include "tests/support/error_text.h"

namespace clearhead::model::encoder {
namespace {

using clearhead::tests::error_text;

constexpr double kWeightTolerance = 2e-5, kHiddenTolerance = 5e-5;

std::shared_ptr<const format::Checkpoint> saved(const std::string& family) {
  return std::make_shared<const format::Checkpoint>(
      format::Checkpoint::open(std::filesystem::path(CLEARHEAD_TEST_DATA) / family));
}

struct FamilyText {
  const char* family;
  GoldenText text;
};

class SmallEncoder : public testing::TestWithParam<FamilyText> {};

TEST_P(SmallEncoder, AllHeadsAndTheHiddenStateAreThoseOfPyTorch) {
  const std::string family = GetParam().family;
  const LoadedModel model = load_model(saved(family));
  expect_golden(model.transformer, family + "_", GetParam().text, kWeightTolerance, kHiddenTolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Texts, SmallEncoder,
    testing::Values(FamilyText{"roberta", {"one_token", 1}}, FamilyText{"roberta", {"all_positions", 24}},
                    FamilyText{"roberta", {"padded", 9}}, FamilyText{"xlm_roberta", {"one_token", 1}},
                    FamilyText{"xlm_roberta", {"all_positions", 24}}, FamilyText{"xlm_roberta", {"padded", 9}},
                    FamilyText{"distilbert", {"one_token", 1}}, FamilyText{"distilbert", {"all_positions", 24}}),
    [](const auto& text) { return std::string(text.param.family) + "_" + text.param.text.name; });

TEST(SmallEncoders, OnlyTheHeadOverTheVocabularyIsNotUsed) {
  const LoadedModel roberta = load_model(saved("roberta"));
  ASSERT_EQ(roberta.warnings.size(), 1u);
  EXPECT_NE(roberta.warnings[0].find("\"lm_head.bias\""), std::string::npos) << roberta.warnings[0];
  EXPECT_TRUE(load_model(saved("xlm_roberta")).warnings.empty());
  EXPECT_TRUE(load_model(saved("distilbert")).warnings.empty());
}

// Transformers numbers so since 2019; engines that forgot it read past the table.
TEST(Roberta, PositionsBeginBehindThePaddingToken) {
  ModelConfig config;
  config.padding_id = 1;
  const std::vector<int64_t> ids = {0, 31414, 232, 2, 1, 1};
  EXPECT_EQ(position_rows(config, ids), (std::vector<size_t>{2, 3, 4, 5, 1, 1}));
  EXPECT_EQ(position_rows({}, ids), (std::vector<size_t>{0, 1, 2, 3, 4, 5}));
  const Transformer model = load_model(saved("roberta")).transformer;
  EXPECT_EQ(model.config().context_len, 24u);
  EXPECT_EQ(error_text([&] {
              model.run({std::vector<int64_t>(25, 7), {}});
            }),
            "usage: [model] expected at most 24 tokens, the positions of the model; found 25");
}

TEST(Roberta, RefusesATableThatEndsAtThePaddingToken) {
  ConfigJson json(R"({"model_type": "roberta", "pad_token_id": 5, "max_position_embeddings": 6})", "config.json");
  EXPECT_EQ(error_text([&] { roberta().read_config(json); }),
            "[config.json] expected max_position_embeddings above 6, the rows behind pad_token_id; found 6");
}

TEST(SmallEncoders, TheirConfigsAreReadKeyByKey) {
  const auto refusal = [](const Family& family, const std::string& settings) {
    return error_text([&] {
      ConfigJson json("{" + settings + "}", "config.json");
      family.read_config(json);
      json.refuse_unread();
    });
  };
  EXPECT_EQ(refusal(distilbert(), R"("n_heads": 5)"),
            "[config.json] expected n_heads that divide dim; found 5 heads and dim 768");
  EXPECT_EQ(refusal(distilbert(), R"("hidden_dim": 0)"), "[config.json] expected hidden_dim of 1 or more; found 0");
  EXPECT_NE(refusal(distilbert(), R"("activation": "mish")").find("expected activation to be one of: gelu"),
            std::string::npos);
  EXPECT_NE(refusal(roberta(), R"("is_decoder": true)").find("expected is_decoder to be one of: false"),
            std::string::npos);
  EXPECT_NE(refusal(xlm_roberta(), R"("position_embedding_type": "relative_key")").find("absolute"), std::string::npos);
}

TEST(SmallEncoders, NamesWithAndWithoutPrefix) {
  const std::vector<int64_t> ids = {0, 7, 9, 2};
  for (const auto& [family, prefix] : {std::pair("roberta", "roberta."), std::pair("distilbert", "distilbert.")}) {
    const auto checkpoint = saved(family);
    const tensor::Tensor truth = load_model(checkpoint).transformer.run({ids, {}});
    TensorBag bag;
    for (const std::string& name : checkpoint->names()) {
      const bool prefixed = name.starts_with(prefix);
      const std::string bare = prefixed ? name.substr(std::string(prefix).size()) : name;
      bag.put(prefixed || name.starts_with("lm_head") ? bare : prefix + name, tensor::clone(checkpoint->view(name)));
    }
    const LoadedModel model = load_model(bag.checkpoint(std::string(checkpoint->config_json())));
    EXPECT_TRUE(tensor::same_bits(model.transformer.run({ids, {}}), truth)) << family;
  }
}

}  // namespace
}  // namespace clearhead::model::encoder
