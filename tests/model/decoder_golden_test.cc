// SPDX-License-Identifier: Apache-2.0
// Small decoders of random parameters, as transformers saved them, against its eager attention in float32.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "clearhead/model/families/family.h"
#include "clearhead/tensor/compare.h"
#include "tests/support/stage_collector.h"

namespace clearhead::model {
namespace {

using capture::Stage;

constexpr double kWeightTolerance = 2e-5, kHiddenTolerance = 1e-4, kLogitTolerance = 2e-4;

std::filesystem::path data(const std::string& name) {
  return std::filesystem::path(CLEARHEAD_TEST_DATA) / "decoders" / name;
}

LoadedModel load(const std::string& name) {
  return load_model(std::make_shared<const format::Checkpoint>(format::Checkpoint::open(data(name))));
}

// The part of a golden tensor [count, ...] that belongs to one layer.
tensor::TensorView part(const tensor::TensorView& all, size_t index) {
  const auto sizes = all.shape().sizes();
  const size_t bytes = all.bytes().size() / sizes[0];
  return {all.dtype(), tensor::Shape(sizes.subspan(1)), all.bytes().subspan(index * bytes, bytes)};
}

double drift(const tensor::Tensor& seen, const tensor::TensorView& truth) {
  return tensor::compare(tensor::clone(seen).reshaped(truth.shape()), truth).max_abs;
}

class DecoderGolden : public testing::TestWithParam<const char*> {};

TEST_P(DecoderGolden, WeightsHiddenStatesAndLogitsAreThoseOfPyTorch) {
  const std::string name = GetParam();
  const auto golden = format::SafetensorsFile::open(data(name + "_golden.safetensors"));
  const tensor::Tensor ids = tensor::clone(golden.view("ids"));
  const LoadedModel model = load(name);
  EXPECT_TRUE(model.warnings.empty()) << model.warnings[0];
  tests::StageCollector collector({Stage::weights, Stage::layer_output, Stage::embedding, Stage::logits});
  const tensor::Tensor hidden = model.transformer.run({ids.as<int64_t>(), {}}, &collector);

  const size_t layers = model.transformer.config().num_layers;
  const tensor::TensorView weights = golden.view("weights"), states = golden.view("hidden");
  double weight_drift = 0, hidden_drift = drift(collector.get(Stage::embedding, 0), part(states, 0));
  for (size_t layer = 0; layer < layers; ++layer) {
    weight_drift = std::max(weight_drift, drift(collector.get(Stage::weights, layer), part(weights, layer)));
    const tensor::Tensor& output = layer + 1 == layers ? hidden : collector.get(Stage::layer_output, layer);
    hidden_drift = std::max(hidden_drift, drift(output, part(states, layer + 1)));
  }
  const double logit_drift = drift(collector.get(Stage::logits, 0), golden.view("logits"));
  RecordProperty("weights", fmt::format("{:.2e}", weight_drift));
  RecordProperty("hidden", fmt::format("{:.2e}", hidden_drift));
  RecordProperty("logits", fmt::format("{:.2e}", logit_drift));
  EXPECT_LE(weight_drift, kWeightTolerance);
  EXPECT_LE(hidden_drift, kHiddenTolerance);
  EXPECT_LE(logit_drift, kLogitTolerance);
}

INSTANTIATE_TEST_SUITE_P(Models, DecoderGolden,
                         testing::Values("llama", "llama_wide_heads", "llama_linear", "llama_dynamic", "llama_yarn",
                                         "llama_llama3", "llama_longrope", "mistral", "qwen2", "qwen3", "gemma2",
                                         "gemma3", "gpt2", "gpt_neox"),
                         [](const auto& model) { return std::string(model.param); });

TEST(Llama, AGgufWithItsRowsInPairsComputesTheSameBits) {
  const auto golden = format::SafetensorsFile::open(data("llama_golden.safetensors"));
  const tensor::Tensor ids = tensor::clone(golden.view("ids"));
  const LoadedModel hub = load("llama"), gguf = load("llama.gguf");
  EXPECT_TRUE(gguf.warnings.empty()) << gguf.warnings[0];
  const ModelConfig& config = gguf.transformer.config();
  EXPECT_NE(config.attention.num_heads, config.attention.num_kv_heads);
  tests::StageCollector one({Stage::query, Stage::logits}), other({Stage::query, Stage::logits});
  const tensor::Tensor hidden = hub.transformer.run({ids.as<int64_t>(), {}}, &one);
  EXPECT_TRUE(tensor::same_bits(gguf.transformer.run({ids.as<int64_t>(), {}}, &other), hidden));
  EXPECT_TRUE(tensor::same_bits(one.get(Stage::query, 1), other.get(Stage::query, 1)));
  EXPECT_TRUE(tensor::same_bits(one.get(Stage::logits, 0), other.get(Stage::logits, 0)));
}

}  // namespace
}  // namespace clearhead::model
