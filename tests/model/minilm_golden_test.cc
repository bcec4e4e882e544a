// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>

#include "clearhead/base/parallel.h"
#include "clearhead/format/checkpoint.h"
#include "clearhead/format/safetensors.h"
#include "clearhead/model/families/family.h"
#include "clearhead/tensor/compare.h"
#include "tests/support/model_folder.h"
#include "tests/support/stage_collector.h"

namespace clearhead::model {
namespace {

using capture::Stage;
using tests::StageCollector;

constexpr size_t kLayers = 6, kHeads = 12, kWidth = 384;
constexpr double kWeightTolerance = 2e-5, kHiddenTolerance = 5e-5;

std::shared_ptr<const format::Checkpoint> minilm_checkpoint() {
  return std::make_shared<const format::Checkpoint>(format::Checkpoint::open(tests::minilm_folder()));
}

const Transformer& minilm() {
  static const LoadedModel model = load_model(minilm_checkpoint());
  return model.transformer;
}

format::SafetensorsFile golden(const std::string& name) {
  return format::SafetensorsFile::open(std::filesystem::path(CLEARHEAD_TEST_DATA) /
                                       fmt::format("minilm_{}.safetensors", name));
}

std::vector<int64_t> ids_of(const format::SafetensorsFile& file) {
  const tensor::Tensor ids = tensor::clone(file.view("ids"));
  const auto values = ids.as<int64_t>();
  return {values.begin(), values.end()};
}

// What one text gives: weights of every head, and the last hidden state.
struct Seen {
  explicit Seen(std::span<const int64_t> ids)
      : seq(ids.size()), collector({Stage::weights}), hidden(minilm().run({ids, {}}, &collector)) {}

  float weight(size_t layer, size_t head, size_t query, size_t key) const {
    return collector.get(Stage::weights, layer).as<float>()[(head * seq + query) * seq + key];
  }

  size_t seq;
  StageCollector collector;
  tensor::Tensor hidden;  // [1, seq, d_model]
};

// Largest differences from the golden file, all values or the sampled places.
struct Drift {
  double weights = 0, hidden = 0;
};

Drift drift(const Seen& seen, const format::SafetensorsFile& file) {
  Drift found;
  if (file.contains("weights")) {
    const tensor::Tensor weights = tensor::clone(file.view("weights")), hidden = tensor::clone(file.view("hidden"));
    EXPECT_EQ(weights.shape(), (tensor::Shape{kLayers, kHeads, seen.seq, seen.seq}));
    EXPECT_EQ(hidden.shape(), (tensor::Shape{seen.seq, kWidth}));
    const size_t per_head = seen.seq * seen.seq;
    for (size_t i = 0; i < weights.elements(); ++i) {
      const size_t head = i / per_head, place = i % per_head;
      const double ours = seen.weight(head / kHeads, head % kHeads, place / seen.seq, place % seen.seq);
      found.weights = std::max(found.weights, std::abs(ours - static_cast<double>(weights.as<float>()[i])));
    }
    found.hidden = tensor::compare(tensor::clone(seen.hidden).reshaped({seen.seq, kWidth}), hidden).max_abs;
    return found;
  }
  const tensor::Tensor places = tensor::clone(file.view("weight_places")),
                       values = tensor::clone(file.view("weight_values")),
                       hidden_places = tensor::clone(file.view("hidden_places")),
                       hidden_values = tensor::clone(file.view("hidden_values"));
  EXPECT_EQ(places.shape(), (tensor::Shape{4096, 4}));
  EXPECT_EQ(hidden_places.shape(), (tensor::Shape{4096, 2}));
  for (size_t i = 0; i < values.elements(); ++i) {
    const auto place = places.as<int32_t>().subspan(i * 4, 4);
    const double ours = seen.weight(static_cast<size_t>(place[0]), static_cast<size_t>(place[1]),
                                    static_cast<size_t>(place[2]), static_cast<size_t>(place[3]));
    found.weights = std::max(found.weights, std::abs(ours - static_cast<double>(values.as<float>()[i])));
  }
  for (size_t i = 0; i < hidden_values.elements(); ++i) {
    const auto place = hidden_places.as<int32_t>().subspan(i * 2, 2);
    const double ours = seen.hidden.as<float>()[static_cast<size_t>(place[0]) * kWidth + static_cast<size_t>(place[1])];
    found.hidden = std::max(found.hidden, std::abs(ours - static_cast<double>(hidden_values.as<float>()[i])));
  }
  return found;
}

struct GoldenText {
  const char* name;
  size_t tokens;
};

class MinilmGolden : public testing::TestWithParam<GoldenText> {};

TEST_P(MinilmGolden, AllHeadsAndTheHiddenStateAreThoseOfPyTorch) {
  const format::SafetensorsFile file = golden(GetParam().name);
  const std::vector<int64_t> ids = ids_of(file);
  ASSERT_EQ(ids.size(), GetParam().tokens);
  const Drift found = drift(Seen(ids), file);
  RecordProperty("weights", fmt::format("{:.2e}", found.weights));
  RecordProperty("hidden", fmt::format("{:.2e}", found.hidden));
  EXPECT_LE(found.weights, kWeightTolerance);
  EXPECT_LE(found.hidden, kHiddenTolerance);
}

INSTANTIATE_TEST_SUITE_P(Texts, MinilmGolden,
                         testing::Values(GoldenText{"one_token", 1}, GoldenText{"single_character", 3},
                                         GoldenText{"cat", 8}, GoldenText{"sixteen", 16}, GoldenText{"chinese", 17},
                                         GoldenText{"markup", 20}, GoldenText{"two_sentences", 32},
                                         GoldenText{"six_sentences", 92}, GoldenText{"ten_sentences", 152},
                                         GoldenText{"longest", 512}),
                         [](const auto& text) { return std::string(text.param.name); });

TEST(Minilm, TheVerbLooksAtWhoActsAndWhere) {
  const Seen seen(ids_of(golden("cat")));
  constexpr size_t kCat = 2, kSat = 3, kMat = 6;
  EXPECT_NEAR(seen.weight(5, 11, kSat, kCat), 0.89, 0.005);
  EXPECT_NEAR(seen.weight(5, 11, kSat, kMat), 0.03, 0.005);
  EXPECT_NEAR(seen.weight(5, 3, kSat, kMat), 0.43, 0.005);
  EXPECT_NEAR(seen.weight(5, 3, kSat, kCat), 0.17, 0.005);
  EXPECT_NEAR(seen.weight(5, 5, kSat, kMat), 0.38, 0.005);
  EXPECT_NEAR(seen.weight(5, 5, kSat, kCat), 0.09, 0.005);
  EXPECT_NEAR(seen.weight(0, 2, kSat, kCat), 1.00, 0.005);
}

TEST(Minilm, WatchingEveryStageChangesNoBit) {
  const std::vector<int64_t> ids = ids_of(golden("markup"));
  std::set<Stage> all;
  for (const capture::StageInfo& row : capture::stages()) all.insert(row.stage);
  StageCollector collector(all);
  const tensor::Tensor watched = minilm().run({ids, {}}, &collector), alone = minilm().run({ids, {}});
  EXPECT_TRUE(tensor::same_bits(watched, alone));
  for (const capture::StageInfo& row : capture::stages()) {
    const bool shown = minilm().has(row.stage);
    EXPECT_EQ(collector.has(row.stage), shown) << row.name;
    EXPECT_EQ(collector.has(row.stage, kLayers - 1), shown && row.place == capture::Place::in_layer) << row.name;
  }
  EXPECT_EQ(collector.size(), 4 + kLayers * 18) << "stages of every layer and four before them";
  EXPECT_TRUE(tensor::same_bits(collector.get(Stage::layer_output, kLayers - 1), alone));
  EXPECT_TRUE(tensor::same_bits(collector.get(Stage::attention_input, 0), collector.get(Stage::embedding)));
}

TEST(Minilm, AnyNumberOfThreadsGivesTheSameBits) {
  const std::vector<int64_t> ids = ids_of(golden("ten_sentences"));
  const size_t before = base::num_threads();
  base::set_num_threads(1);
  const Seen one(ids);
  for (size_t threads : {2, 3}) {
    base::set_num_threads(threads);
    const Seen more(ids);
    EXPECT_TRUE(tensor::same_bits(one.hidden, more.hidden)) << threads;
    for (size_t layer = 0; layer < kLayers; ++layer) {
      EXPECT_TRUE(
          tensor::same_bits(one.collector.get(Stage::weights, layer), more.collector.get(Stage::weights, layer)))
          << threads << " threads, layer " << layer;
    }
  }
  base::set_num_threads(before);
}

TEST(Minilm, EveryRowOfWeightsSumsToOne) {
  const Seen seen(ids_of(golden("six_sentences")));
  for (size_t layer = 0; layer < kLayers; ++layer) {
    const auto weights = seen.collector.get(Stage::weights, layer).as<float>();
    for (size_t row = 0; row < kHeads * seen.seq; ++row) {
      const auto one = weights.subspan(row * seen.seq, seen.seq);
      ASSERT_NEAR(std::accumulate(one.begin(), one.end(), 0.0), 1, 1e-6) << "layer " << layer << " row " << row;
    }
  }
}

TEST(Minilm, ThePoolerAndPositionIdsAreKnownNotToBeUsed) {
  EXPECT_TRUE(load_model(minilm_checkpoint()).warnings.empty());
}

}  // namespace
}  // namespace clearhead::model
