// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <set>

#include "clearhead/base/parallel.h"
#include "clearhead/format/checkpoint.h"
#include "clearhead/model/families/family.h"
#include "clearhead/tensor/compare.h"
#include "tests/model/encoder_golden.h"
#include "tests/support/model_folder.h"
#include "tests/support/stage_collector.h"

namespace clearhead::model::encoder {
namespace {

using capture::Stage;
using clearhead::tests::StageCollector;

constexpr size_t kLayers = 6, kHeads = 12;
constexpr double kWeightTolerance = 2e-5, kHiddenTolerance = 5e-5;

std::shared_ptr<const format::Checkpoint> minilm_checkpoint() {
  return std::make_shared<const format::Checkpoint>(format::Checkpoint::open(clearhead::tests::minilm_folder()));
}

const Transformer& minilm() {
  static const LoadedModel model = load_model(minilm_checkpoint());
  return model.transformer;
}

class MinilmGolden : public testing::TestWithParam<GoldenText> {};

TEST_P(MinilmGolden, AllHeadsAndTheHiddenStateAreThoseOfPyTorch) {
  expect_golden(minilm(), "minilm_", GetParam(), kWeightTolerance, kHiddenTolerance);
}

INSTANTIATE_TEST_SUITE_P(Texts, MinilmGolden,
                         testing::Values(GoldenText{"one_token", 1}, GoldenText{"single_character", 3},
                                         GoldenText{"cat", 8}, GoldenText{"sixteen", 16}, GoldenText{"chinese", 17},
                                         GoldenText{"markup", 20}, GoldenText{"two_sentences", 32},
                                         GoldenText{"six_sentences", 92}, GoldenText{"ten_sentences", 152},
                                         GoldenText{"longest", 512}),
                         name_of);

TEST(Minilm, TheVerbLooksAtWhoActsAndWhere) {
  const Seen seen(minilm(), ids_of(golden("minilm_cat")));
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
  const std::vector<int64_t> ids = ids_of(golden("minilm_markup"));
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
  const std::vector<int64_t> ids = ids_of(golden("minilm_ten_sentences"));
  const size_t before = base::num_threads();
  base::set_num_threads(1);
  const Seen one(minilm(), ids);
  for (size_t threads : {2, 3}) {
    base::set_num_threads(threads);
    const Seen more(minilm(), ids);
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
  const Seen seen(minilm(), ids_of(golden("minilm_six_sentences")));
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
}  // namespace clearhead::model::encoder
