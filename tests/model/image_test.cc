// SPDX-License-Identifier: Apache-2.0
// Small vision transformers of random parameters, as transformers saved them, against its eager attention in float32.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "clearhead/model/families/family.h"
#include "clearhead/tensor/compare.h"
#include "tests/model/tensor_bag.h"
#include "tests/support/error_text.h"
#include "tests/support/stage_collector.h"

namespace clearhead::model {
namespace {

using capture::Stage;
using tests::error_text;

constexpr double kWeightTolerance = 2e-5, kHiddenTolerance = 5e-5;

std::filesystem::path data(const std::string& name) {
  return std::filesystem::path(CLEARHEAD_TEST_DATA) / "images" / name;
}

std::shared_ptr<const format::Checkpoint> saved(const std::string& name) {
  return std::make_shared<const format::Checkpoint>(format::Checkpoint::open(data(name)));
}

double drift(const tensor::Tensor& seen, const tensor::TensorView& truth) {
  return tensor::compare(tensor::clone(seen).reshaped(truth.shape()), truth).max_abs;
}

class ImageGolden : public testing::TestWithParam<const char*> {};

TEST_P(ImageGolden, WeightsAndHiddenStatesAreThoseOfPyTorch) {
  const std::string name = GetParam();
  const auto golden = format::SafetensorsFile::open(data(name + "_golden.safetensors"));
  const tensor::Tensor pixels = tensor::clone(golden.view("pixels"));
  const LoadedModel model = load_model(saved(name));
  EXPECT_TRUE(model.warnings.empty()) << model.warnings[0];
  tests::StageCollector collector({Stage::weights, Stage::embedding});
  const tensor::Tensor hidden =
      model.transformer.run({.ids = {}, .type_ids = {}, .pixels = pixels.as<float>()}, &collector);
  const tensor::TensorView truth = golden.view("weights");  // [layers, heads, seq, seq]
  tensor::Tensor weights{truth.shape()};
  for (size_t layer = 0; layer < truth.shape()[0]; ++layer) {
    const auto seen = collector.get(Stage::weights, layer).as<float>();
    std::ranges::copy(seen, weights.as<float>().subspan(layer * seen.size()).begin());
  }
  const double weight_drift = drift(weights, truth);
  const double hidden_drift = std::max(drift(hidden, golden.view("hidden")),
                                       drift(collector.get(Stage::embedding, 0), golden.view("embedding")));
  RecordProperty("weights", fmt::format("{:.2e}", weight_drift));
  RecordProperty("hidden", fmt::format("{:.2e}", hidden_drift));
  EXPECT_LE(weight_drift, kWeightTolerance);
  EXPECT_LE(hidden_drift, kHiddenTolerance);
}

INSTANTIATE_TEST_SUITE_P(Models, ImageGolden, testing::Values("vit", "vit_without_bias", "dinov2_with_registers"),
                         [](const auto& model) { return std::string(model.param); });

// A grid of 3 x 5 patches, behind a class token.
TEST(Image, GridsNeedNotBeSquare) {
  const Transformer model = load_model(saved("vit")).transformer;
  const PatchGrid& grid = *model.config().patches;
  EXPECT_EQ(grid.rows(), 3u);
  EXPECT_EQ(grid.columns(), 5u);
  EXPECT_EQ(grid.tokens(), 16u);
  // One pixel of the last patch changes the row of that patch alone in what enters layer 0.
  std::vector<float> pixels(grid.image_values(), 0.5f);
  tests::StageCollector before({Stage::embedding}), after({Stage::embedding});
  model.run({.ids = {}, .type_ids = {}, .pixels = pixels}, &before);
  pixels.back() = 1;
  model.run({.ids = {}, .type_ids = {}, .pixels = pixels}, &after);
  const auto one = before.get(Stage::embedding, 0).as<float>(), other = after.get(Stage::embedding, 0).as<float>();
  const size_t width = model.config().d_model;
  for (size_t i = 0; i < one.size(); ++i) {
    if (i / width < 15) {
      EXPECT_EQ(one[i], other[i]) << i;
    }
  }
  EXPECT_NE(one[15 * width], other[15 * width]);
}

TEST(Image, RegistersStandBehindTheClassTokenAndHaveNoPlace) {
  const Transformer model = load_model(saved("dinov2_with_registers")).transformer;
  const PatchGrid& grid = *model.config().patches;
  EXPECT_EQ(grid.registers, 3u);
  EXPECT_EQ(grid.tokens(), 1u + 3 + 9);
  tests::StageCollector collector({Stage::token_embedding, Stage::position_embedding, Stage::embedding});
  model.run({.ids = {}, .type_ids = {}, .pixels = std::vector<float>(grid.image_values(), 0.25f)}, &collector);
  const size_t width = model.config().d_model;
  const auto tokens = collector.get(Stage::token_embedding, 0).as<float>();
  const auto places = collector.get(Stage::position_embedding, 0).as<float>();
  const auto sum = collector.get(Stage::embedding, 0).as<float>();
  const auto registers = model.parameters().register_tokens.as<float>();
  for (size_t i = 0; i < 3 * width; ++i) {
    EXPECT_EQ(tokens[width + i], registers[i]);
    EXPECT_EQ(places[width + i], 0);
  }
  for (size_t i = 0; i < sum.size(); ++i) EXPECT_EQ(sum[i], tokens[i] + places[i]);
  EXPECT_NE(places[4 * width], 0);
}

TEST(Image, WhatIsNotAnImageOfItsSizeIsRefused) {
  const Transformer model = load_model(saved("vit")).transformer;
  const auto complaint = [&](const ModelInput& input) { return error_text([&] { model.run(input); }); };
  const std::vector<float> small(3 * 6 * 16);
  EXPECT_EQ(complaint({.ids = {}, .type_ids = {}, .pixels = small}),
            "usage: [model] expected an image of 3 x 6 x 20 values; found 288 values; resize the image: positions are "
            "not interpolated to other sizes");
  EXPECT_EQ(complaint({.ids = {}, .type_ids = {}}),
            "usage: [model] expected an image of 3 x 6 x 20 values; found 0 values; resize the image: positions are "
            "not interpolated to other sizes");
  const std::vector<int64_t> ids = {1};
  EXPECT_EQ(complaint({ids, {}}), "usage: [model] expected one image; found token ids; this model reads no text");
}

TEST(Image, ATextModelReadsNoImage) {
  const Transformer text = load_model(std::make_shared<const format::Checkpoint>(format::Checkpoint::open(
                                          std::filesystem::path(CLEARHEAD_TEST_DATA) / "gpt2")))
                               .transformer;
  const std::vector<float> pixels(12);
  const std::vector<int64_t> ids = {1};
  EXPECT_EQ(error_text([&] { text.run({.ids = ids, .type_ids = {}, .pixels = pixels}); }),
            "usage: [model] expected token ids; found an image");
}

TEST(Image, ConfigsAreReadKeyByKey) {
  const auto read = [](const Family& family, const std::string& settings) {
    ConfigJson json("{" + settings + "}", "config.json");
    ModelConfig config = family.read_config(json);
    json.refuse_unread();
    config.check();
    return config;
  };
  const auto refusal = [&](const Family& family, const std::string& settings) {
    return error_text([&] { read(family, settings); });
  };
  const ModelConfig base = read(vit(), "");
  EXPECT_EQ(base.patches->tokens(), 197u);
  EXPECT_EQ(base.d_ff, 3072u);
  EXPECT_EQ(read(dinov2_with_registers(), "").patches->tokens(), 201u);
  EXPECT_EQ(refusal(vit(), R"("image_size": 225)"),
            "[model config] expected an image_size that patches of 16 x 16 fill; found 225 x 225");
  EXPECT_EQ(refusal(vit(), R"("patch_size": [16, 16, 16])"),
            "[config.json] expected patch_size of one or two numbers from 1 to 65536; found 3 numbers");
  EXPECT_EQ(refusal(vit(), R"("patch_size": 0)"),
            "[config.json] expected patch_size of one or two numbers from 1 to 65536; found 0");
  EXPECT_EQ(refusal(vit(), R"("num_channels": 0)"),
            "[model config] expected num_channels and patch_size of 1 or more; found 0, 16 x 16");
  EXPECT_EQ(refusal(vit(), R"("num_attention_heads": 5)"),
            "[config.json] expected num_attention_heads that divide hidden_size; found 5 heads and hidden_size 768");
  EXPECT_NE(
      refusal(dinov2_with_registers(), R"("use_swiglu_ffn": true)").find("expected use_swiglu_ffn to be one of: false"),
      std::string::npos);
  EXPECT_NE(refusal(vit(), R"("num_register_tokens": 4)").find("\"num_register_tokens\""), std::string::npos);
}

// Positions of another grid are a tensor of another shape, which is named.
TEST(Image, APositionTableOfAnotherGridIsRefused) {
  const auto checkpoint = saved("vit");
  TensorBag bag;
  for (const std::string& name : checkpoint->names()) bag.put(name, tensor::clone(checkpoint->view(name)));
  bag.add("embeddings.position_embeddings", {1, 17, 24});
  const std::string text = error_text([&] { load_model(bag.checkpoint(checkpoint->config_json())); });
  EXPECT_NE(text.find("\"embeddings.position_embeddings\" of shape [1, 16, 24]"), std::string::npos) << text;
}

}  // namespace
}  // namespace clearhead::model
