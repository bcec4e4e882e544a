// SPDX-License-Identifier: Apache-2.0
// Kinds of faults that attention engines really had, each with the small input that shows it.
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "clearhead/attention/merge.h"
#include "clearhead/attention/sizes.h"
#include "problem.h"
#include "tests/support/error_text.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using attention::Precision;
using capture::Stage;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLowest = std::numeric_limits<float>::lowest();

TEST(Faults, ARowThatSeesNothingIsZeroAndFlagged) {
  Problem problem = equal_scores(2, {5, 6, 7});
  problem.set_mask(std::vector<bool>{false, false, false, true, false, true}, {1, 1, 2, 3});
  Everything seen;
  const auto output = problem.run(&seen);
  EXPECT_EQ(floats(output.head_output), (std::vector<float>{0, 6}));
  EXPECT_EQ(floats(output.row_reference), (std::vector<float>{-kInfinity, 0}));
  EXPECT_EQ(floats(output.row_sum), (std::vector<float>{0, 2}));
  EXPECT_EQ(floats(seen.get(Stage::weights)), (std::vector<float>{0, 0, 0, 0.5f, 0, 0.5f}));
  EXPECT_EQ(floats(seen.get(Stage::scores)),
            (std::vector<float>{-kInfinity, -kInfinity, -kInfinity, 0, -kInfinity, 0}));
}

TEST(Faults, NaNBehindAMaskTouchesNothing) {
  for (float poison : {kNaN, kInfinity, 1e30f}) {
    Problem problem = equal_scores(1, {3, poison});
    problem.query[0] = 1;
    problem.key = {1, poison};
    problem.set_mask(std::vector<bool>{true, false}, {1, 1, 1, 2});
    EXPECT_EQ(head_output(problem), std::vector<float>{3});
  }
}

TEST(Faults, TwoLowestFloatsMaskAsOneDoes) {
  for (float forbidden : {kLowest, -kInfinity, -1e30f, kLowest + kLowest}) {
    Problem problem = equal_scores(1, {3, 4});
    problem.set_mask(std::vector<float>{forbidden, forbidden}, {1, 1, 1, 2});
    EXPECT_EQ(head_output(problem), std::vector<float>{0});
    problem.set_mask(std::vector<float>{forbidden, 0}, {1, 1, 1, 2});
    EXPECT_EQ(head_output(problem), std::vector<float>{4});
  }
}

TEST(Faults, AWholeTileMayBeMaskedAnywhere) {
  const size_t tile = attention::kKeyTile;
  for (size_t hidden : {0, 1}) {
    Problem problem = equal_scores(1, std::vector<float>(2 * tile, 1.0f));
    std::vector<bool> visible(2 * tile, true);
    for (size_t j = 0; j < tile; ++j) {
      problem.value[hidden * tile + j] = 99.0f;
      visible[hidden * tile + j] = false;
    }
    problem.set_mask(visible, {1, 1, 1, 2 * tile});
    EXPECT_EQ(head_output(problem), std::vector<float>{1.0f});
  }
}

TEST(Faults, NaNInAQueryMakesItsRowNaNAndNoOther) {
  for_each_target([](const std::string&) {
    for (size_t place : {0, 7, 8}) {
      Problem problem({.query_len = 3, .key_len = 9, .head_dim = 9, .value_dim = 9});
      const std::vector<float> clean = head_output(problem);
      problem.query[9 + place] = kNaN;
      const std::vector<float> output = head_output(problem);
      for (size_t i = 0; i < 27; ++i) {
        if (i / 9 == 1) {
          EXPECT_EQ(std::bit_cast<uint32_t>(output[i]), 0x7fc00000u) << i;
        } else {
          EXPECT_EQ(output[i], clean[i]);
        }
      }
    }
  });
}

TEST(Faults, NaNInAVisibleKeyIsNotSwallowed) {
  Problem problem({.query_len = 2, .key_len = 300, .head_dim = 9, .value_dim = 2});
  problem.config.causal = Causal::offset;
  problem.config.key_offset = 298;  // query 0 sees 299 keys, query 1 all
  problem.key[299 * 9 + 8] = kNaN;
  Everything seen;
  const auto output = problem.run(&seen);
  EXPECT_FALSE(std::isnan(output.head_output.as<float>()[0]));
  EXPECT_TRUE(std::isnan(output.head_output.as<float>()[2]));
  EXPECT_TRUE(std::isnan(output.row_sum.as<float>()[1]));
  EXPECT_TRUE(std::isnan(seen.values(Stage::weights)[300 + 299]));
  EXPECT_EQ(seen.values(Stage::weights)[299], 0.0f);
}

TEST(Faults, ATrueInABooleanMaskMeansMayAttend) {
  Problem problem = equal_scores(1, {1, 100});
  problem.set_mask(std::vector<bool>{true, false}, {1, 1, 1, 2});
  EXPECT_EQ(head_output(problem), std::vector<float>{1});
}

TEST(Faults, APaddingMaskHidesKeysNotQueries) {
  Problem problem = equal_scores(3, {1, 2, 3});
  problem.set_mask(std::vector<bool>{true, true, false}, {1, 1, 1, 3});
  EXPECT_EQ(head_output(problem), (std::vector<float>{1.5f, 1.5f, 1.5f}));
}

TEST(Faults, AMaskOfAmbiguousShapeIsRefused) {
  Problem problem({.batch = 2, .query_len = 2, .key_len = 2});
  const std::string expected =
      "usage: [attention mask] expected [batch, heads, query, key] = [2, 1, 2, 2] with each axis of that size or 1; "
      "found ";
  const std::vector<bool> four(4, true), six(6, true);
  EXPECT_EQ(error_text([&] { problem.set_mask(four, {2, 2}); }), expected + "[2, 2]");
  EXPECT_EQ(error_text([&] { problem.set_mask(six, {1, 1, 2, 3}); }), expected + "[1, 1, 2, 3]");
}

TEST(Faults, BothCausalAlignmentsGoByTheirNames) {
  Problem problem = equal_scores(2, {1, 2, 3, 4, 5});
  problem.config.causal = Causal::top_left;
  EXPECT_EQ(head_output(problem), (std::vector<float>{1, 1.5f}));
  problem.config.causal = Causal::offset;
  problem.config.key_offset = 3;
  EXPECT_EQ(head_output(problem), (std::vector<float>{2.5f, 3}));
}

TEST(Faults, WatchingKeepsTheCausalMask) {
  Problem problem({.query_len = 70, .key_len = 70, .head_dim = 8, .value_dim = 8});
  problem.config.causal = Causal::top_left;
  Everything seen;
  const auto watched = problem.run(&seen);
  EXPECT_TRUE(same_bits(floats(watched.head_output), head_output(problem)));
  for (size_t i = 0; i < 70; ++i) {
    for (size_t j = i + 1; j < 70; ++j) EXPECT_EQ(seen.values(Stage::weights)[i * 70 + j], 0.0f);
  }
}

TEST(Faults, GroupedHeadsRepeatTheirKeysAndDoNotTileThem) {
  Problem problem({.key_len = 1, .num_heads = 4, .num_kv_heads = 2});
  problem.value = {10, 20};
  EXPECT_EQ(head_output(problem), (std::vector<float>{10, 10, 20, 20}));
}

TEST(Faults, TheScaleComesFromHeadDimAndIsAppliedOnce) {
  Problem problem({.head_dim = 4});
  problem.query = problem.key = {2, 0, 0, 0};
  Everything seen;
  problem.run(&seen);
  EXPECT_EQ(seen.values(Stage::raw_scores)[0], 4.0f);
  EXPECT_EQ(seen.values(Stage::scores)[0], 2.0f);
  attention::AttentionConfig wide;
  wide.num_heads = 2;
  wide.head_dim = 8;
  EXPECT_EQ(wide.effective_scale(), static_cast<float>(1 / std::sqrt(8.0)));
}

TEST(Faults, ImpossibleHeadCountsAreRefusedBeforeAnyDivision) {
  Problem problem({.num_heads = 3, .num_kv_heads = 1});
  problem.config.num_kv_heads = 2;
  EXPECT_EQ(error_text([&] { problem.run(); }),
            "usage: [attention] expected num_heads to be a multiple of num_kv_heads; found 3 heads and 2 kv heads");
  problem.config.num_kv_heads = 0;
  EXPECT_EQ(error_text([&] { problem.run(); }), "usage: [attention] expected at least 1 for num_kv_heads; found 0");
  problem.config.num_heads = 0;
  EXPECT_EQ(error_text([&] { problem.run(); }), "usage: [attention] expected at least 1 for num_heads; found 0");
}

TEST(Faults, WeightsStayApartByHead) {
  Problem problem({.key_len = 2, .num_heads = 2, .num_kv_heads = 2});
  problem.query = {1, 1};
  problem.key = {200, -200, -200, 200};  // [key][head]: head 0 looks at key 0, head 1 at key 1
  Everything seen;
  problem.run(&seen);
  EXPECT_EQ(floats(seen.get(Stage::weights)), (std::vector<float>{1, 0, 0, 1}));
}

TEST(Faults, ScorePlacesPassTwoToTheThirtyOne) {
  const attention::ScoreIndex twelve{12, 13378, 13378}, thirty_two{32, 8192, 8192};
  EXPECT_EQ(twelve.start(0, 11, 13377), size_t{12} * 13378 * 13378 - 13378);
  EXPECT_EQ(thirty_two.start(1, 31, 8191), size_t{2} * 32 * 8192 * 8192 - 8192);
  EXPECT_GT(twelve.start(0, 11, 13377), size_t{1} << 31);
}

TEST(Faults, AxesOfOneStay) {
  const Problem problem({.head_dim = 3, .value_dim = 2});
  Everything seen;
  EXPECT_EQ(problem.run(&seen).head_output.shape(), tensor::Shape({1, 1, 1, 2}));
  EXPECT_EQ(seen.get(Stage::weights).shape(), tensor::Shape({1, 1, 1, 1}));
}

// Sums in a narrow type, or one after another in float, lose what is added late.
TEST(Faults, ThousandsOfEqualWeightsStillSumToOneInEveryTypeAndOnEveryTarget) {
  for_each_target([](const std::string&) {
    for (const size_t keys : {4096, 100003}) {
      Problem problem = equal_scores(1, std::vector<float>(keys, 1.0f));
      const auto count = static_cast<double>(keys);
      for (const tensor::DType dtype : {tensor::DType::f32, tensor::DType::f16, tensor::DType::bf16}) {
        for (const Precision precision : {Precision::single, Precision::bfloat16}) {
          SCOPED_TRACE(testing::Message() << keys << " keys of " << tensor::name_of(dtype));
          problem.config.precision = precision;
          const auto narrow = [&](const std::vector<float>& values) {
            return tensor::to_dtype({tensor::DType::f32, {values.size()}, std::as_bytes(std::span(values))}, dtype);
          };
          const tensor::Tensor query = narrow(problem.query), key = narrow(problem.key), value = narrow(problem.value);
          attention::AttentionInput input = problem.input();
          input.query = query.view(), input.key = key.view(), input.value = value.view();
          attention::RowStatistics found;
          const auto output = attention::fused_attention(problem.config, input, &found);
          EXPECT_EQ(floats(output.row_sum)[0], static_cast<float>(keys));
          EXPECT_NEAR(floats(output.head_output)[0], 1.0f, 1e-6f);
          EXPECT_NEAR(found.entropy[0], std::log(count), 1e-6 * std::log(count));
          Everything seen;
          const auto exact = attention::exact_attention(problem.config, input, &seen);
          EXPECT_TRUE(same_bits(all_bits(exact), all_bits(output)));
          double sum = 0;
          for (const float weight : seen.values(Stage::weights)) sum += weight;
          EXPECT_NEAR(sum, 1.0, 1e-6);
        }
      }
    }
  });
}

}  // namespace
}  // namespace clearhead::tests
