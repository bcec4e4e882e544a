// SPDX-License-Identifier: Apache-2.0
// smollm2-135m-instruct from its GGUF, against transformers' float run of the same file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "clearhead/format/checkpoint.h"
#include "clearhead/format/safetensors.h"
#include "clearhead/model/families/family.h"
#include "clearhead/tensor/compare.h"
#include "tests/support/model_folder.h"
#include "tests/support/stage_collector.h"

namespace clearhead::model {
namespace {

using capture::Stage;

constexpr size_t kTexts = 8, kStep = 24;
constexpr size_t kLayers[kTexts] = {0, 5, 10, 15, 20, 25, 29, 12};  // whose weights the golden file has
constexpr double kWeightTolerance = 1e-3, kLogitTolerance = 2e-3;

const LoadedModel& loaded() {
  static const LoadedModel model =
      load_model(std::make_shared<const format::Checkpoint>(format::Checkpoint::open(tests::smollm2_file())));
  return model;
}

const Transformer& smollm2() { return loaded().transformer; }

const format::SafetensorsFile& golden() {
  static const auto file =
      format::SafetensorsFile::open(std::filesystem::path(CLEARHEAD_TEST_DATA) / "smollm2_golden.safetensors");
  return file;
}

std::vector<int64_t> ids_of(const std::string& name) {
  const tensor::Tensor ids = tensor::clone(golden().view(name));
  return {ids.as<int64_t>().begin(), ids.as<int64_t>().end()};
}

std::span<const float> last_row(const tensor::Tensor& hidden) {
  return hidden.as<float>().last(smollm2().config().d_model);
}

// The largest differences of one text from what transformers says.
struct Drift {
  double logits = 0, weights = 0;
};

Drift drift_of(size_t text) {
  const std::vector<int64_t> ids = ids_of(fmt::format("ids.{}", text));
  tests::StageCollector collector({Stage::weights});
  const tensor::Tensor hidden = smollm2().run({ids, {}}, &collector);
  const tensor::Tensor logits = smollm2().logits(last_row(hidden));
  const tensor::Tensor truth = tensor::clone(golden().view(fmt::format("logits.{}", text)));
  Drift drift;
  for (size_t i = 0; i < truth.elements(); ++i) {
    const auto seen = static_cast<double>(logits.as<float>()[i * kStep]);
    drift.logits = std::max(drift.logits, std::abs(seen - static_cast<double>(truth.as<float>()[i])));
  }
  const std::string weights = fmt::format("weights.{}", text);
  if (!golden().contains(weights)) return drift;
  const tensor::TensorView expected = golden().view(weights);
  const tensor::Tensor seen = tensor::clone(collector.get(Stage::weights, kLayers[text])).reshaped(expected.shape());
  drift.weights = tensor::compare(seen, expected).max_abs;
  return drift;
}

// The likeliest token that does not end the text, again and again.
std::vector<int64_t> continued(const std::vector<int64_t>& ids, size_t count) {
  KeyValueCache cache(smollm2().config());
  tensor::Tensor hidden = smollm2().run({.ids = ids, .type_ids = {}, .cache = &cache});
  std::vector<int64_t> found;
  while (found.size() < count) {
    tensor::Tensor logits = smollm2().logits(last_row(hidden));
    for (const int64_t id : loaded().end_ids) logits.as<float>()[static_cast<size_t>(id)] = -1e30f;
    found.push_back(std::ranges::max_element(logits.as<float>()) - logits.as<float>().begin());
    hidden = smollm2().run({.ids = std::span(&found.back(), 1), .type_ids = {}, .cache = &cache});
  }
  return found;
}

// One process loads the model for all of them.
TEST(Smollm2Golden, LogitsWeightsAndTheTokensThatFollowAreThoseOfTransformers) {
  Drift worst;
  for (size_t text = 0; text < kTexts; ++text) {
    const Drift drift = drift_of(text);
    EXPECT_LE(drift.logits, kLogitTolerance) << "text " << text;
    EXPECT_LE(drift.weights, kWeightTolerance) << "text " << text;
    worst = {std::max(worst.logits, drift.logits), std::max(worst.weights, drift.weights)};
    const std::vector<int64_t> expected = ids_of(fmt::format("greedy.{}", text));
    EXPECT_EQ(continued(ids_of(fmt::format("ids.{}", text)), expected.size()), expected) << "text " << text;
  }
  RecordProperty("logits", fmt::format("{:.2e}", worst.logits));
  RecordProperty("weights", fmt::format("{:.2e}", worst.weights));
}

// The vocabulary's matrix is the embedding: once it is packed, rows come from there.
TEST(Smollm2, EmbeddingRowsHaveTheSameBitsFromTheFileAndFromThePackedMap) {
  const auto open = [] {
    return load_model(std::make_shared<const format::Checkpoint>(format::Checkpoint::open(tests::smollm2_file())));
  };
  const LoadedModel unpacked = open(), packed = open();
  const Parameters& parameters = packed.transformer.parameters();
  parameters.vocabulary.get();
  EXPECT_EQ(unpacked.transformer.parameters().vocabulary.packed(), nullptr);
  std::vector<float> stored(576), mapped(576);
  for (const size_t id : {size_t{0}, size_t{17}, size_t{504}, parameters.token_embedding.rows() - 1}) {
    unpacked.transformer.parameters().token_embedding.read(id, stored);
    parameters.token_embedding.read(id, mapped);
    EXPECT_EQ(stored, mapped) << id;
  }
}

}  // namespace
}  // namespace clearhead::model
