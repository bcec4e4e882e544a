// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/exact.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "problem.h"
#include "tests/support/error_text.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using capture::Stage;

// The equation by plain loops in float, as one writes it without further thought: what a fast path is measured by.
std::vector<float> naive_head_output(const Problem& problem) {
  const auto& config = problem.config;
  std::vector<float> output(problem.batch * problem.query_len * config.num_heads * config.value_dim);
  std::vector<float> p(problem.key_len);
  for (size_t b = 0; b < problem.batch; ++b) {
    for (size_t h = 0; h < config.num_heads; ++h) {
      for (size_t i = 0; i < problem.query_len; ++i) {
        const size_t row = (b * problem.query_len + i) * config.num_heads + h, kv = config.kv_head_of(h);
        float largest = -std::numeric_limits<float>::infinity(), sum = 0;
        const size_t end = attention::visible_keys(config, {0, 0, 0, 0, problem.key_len, config.key_offset}, i).end;
        for (size_t j = 0; j < end; ++j) {
          const size_t key = (b * problem.key_len + j) * config.num_kv_heads + kv;
          float dot = 0;
          for (size_t d = 0; d < config.head_dim; ++d) {
            dot += problem.query[row * config.head_dim + d] * problem.key[key * config.head_dim + d];
          }
          p[j] = dot * config.effective_scale();
          largest = std::max(largest, p[j]);
        }
        for (size_t j = 0; j < end; ++j) sum += p[j] = std::exp(p[j] - largest);
        for (size_t j = 0; j < end; ++j) {
          const size_t key = (b * problem.key_len + j) * config.num_kv_heads + kv;
          for (size_t d = 0; d < config.value_dim; ++d) {
            output[row * config.value_dim + d] += p[j] / sum * problem.value[key * config.value_dim + d];
          }
        }
      }
    }
  }
  return output;
}

// At most twice the error of the naive computation; where that is exact by luck (one key), four steps of a value
// near 1.
void expect_as_good_as_naive(const Problem& problem) {
  const auto want = problem.reference();
  const double allowed = std::max(2 * largest_difference(naive_head_output(problem), want.head_output), 4 * 0x1p-24);
  EXPECT_LE(largest_difference(floats(problem.run().head_output), want.head_output), allowed);
}

TEST(ExactAttention, IsAsCloseToDoubleAsTheNaiveLoopsForEveryLengthOnEveryTarget) {
  for_each_target([](const std::string&) {
    for (size_t key_len : {0, 1, 15, 16, 17, 255, 256, 257, 511, 512, 513}) {
      SCOPED_TRACE(key_len);
      for (size_t query_len : {1, 7, 49}) {
        expect_as_good_as_naive(Problem({.query_len = query_len, .key_len = key_len, .head_dim = 24, .value_dim = 17}));
      }
    }
  });
}

TEST(ExactAttention, IsAsCloseToDoubleAsTheNaiveLoopsForEveryHeadSizeOnEveryTarget) {
  for_each_target([](const std::string&) {
    for (size_t dim : {1, 3, 7, 8, 9, 16, 32, 40, 63, 64, 65, 72, 80, 96, 100, 128, 160, 192, 256}) {
      SCOPED_TRACE(dim);
      expect_as_good_as_naive(Problem(
          {.query_len = 5, .key_len = 270, .num_heads = 2, .num_kv_heads = 1, .head_dim = dim, .value_dim = dim}));
    }
  });
}

TEST(ExactAttention, ShowsEveryStageWithinTheToleranceOfItsSum) {
  Problem problem(
      {.batch = 2, .query_len = 9, .key_len = 300, .num_heads = 4, .num_kv_heads = 2, .head_dim = 40, .value_dim = 24});
  problem.set_mask(hashed_values(77, 9 * 300, 3.0f), {1, 1, 9, 300});
  Everything seen;
  problem.run(&seen);
  const auto want = problem.reference();
  // (K + 8) 2^-24 sum |terms| with terms up to 4 and a bias up to 3.
  const double tolerance = (40 + 8) * 0x1p-24 * (40 * 4.0 * problem.config.effective_scale() + 3.0);
  EXPECT_LE(largest_difference(seen.values(Stage::raw_scores), want.raw_scores), (40 + 8) * 0x1p-24 * 40 * 4.0);
  EXPECT_LE(largest_difference(seen.values(Stage::scores), want.scores), tolerance);
  std::vector<double> kernel_scores;
  for (double score : want.scores) kernel_scores.push_back(score * std::numbers::log2e);
  EXPECT_LE(largest_difference(seen.values(Stage::kernel_scores), kernel_scores), tolerance * std::numbers::log2e);
  EXPECT_EQ(largest_difference(seen.values(Stage::row_reference), want.row_reference), 0);
  EXPECT_LE(largest_difference(seen.values(Stage::weights), want.weights), 1e-6);
  EXPECT_EQ(seen.get(Stage::weights).shape(), tensor::Shape({2, 4, 9, 300}));
  EXPECT_EQ(seen.get(Stage::row_sum).shape(), tensor::Shape({2, 4, 9}));
}

TEST(ExactAttention, WeightsFollowFromTheShownScoresReferenceAndSum) {
  const Problem problem({.query_len = 3, .key_len = 600, .head_dim = 8, .value_dim = 8}, 5, 6.0f);
  Everything seen;
  const auto output = problem.run(&seen);
  for (size_t i = 0; i < 3; ++i) {
    const double reference = output.row_reference.as<float>()[i], sum = output.row_sum.as<float>()[i];
    EXPECT_EQ(reference, std::ceil(reference));
    EXPECT_GE(sum, 0.5);
    for (size_t j = 0; j < 600; ++j) {
      const double score = seen.values(Stage::kernel_scores)[i * 600 + j];
      EXPECT_LE(score, reference);
      EXPECT_NEAR(seen.values(Stage::weights)[i * 600 + j], std::exp2(score - reference) / sum, 3e-7);
    }
  }
}

TEST(ExactAttention, GivesEmptyOutputsForNoQueryAndZerosForNoKey) {
  EXPECT_EQ(Problem({.query_len = 0, .key_len = 3}).run().head_output.elements(), 0u);
  EXPECT_EQ(Problem({.batch = 0, .query_len = 2, .key_len = 3}).run().head_output.elements(), 0u);
  const Problem no_key({.query_len = 2, .key_len = 0, .value_dim = 3});
  Everything seen;
  const auto output = no_key.run(&seen);
  EXPECT_EQ(floats(output.head_output), std::vector<float>(6, 0.0f));
  EXPECT_EQ(floats(output.row_sum), std::vector<float>(2, 0.0f));
  EXPECT_EQ(floats(output.row_reference), std::vector<float>(2, -std::numeric_limits<float>::infinity()));
  EXPECT_EQ(seen.get(Stage::weights).shape(), tensor::Shape({1, 1, 2, 0}));
}

TEST(ExactAttention, RefusesSpansThatDoNotFitTheirShapes) {
  Problem problem({.query_len = 2, .key_len = 3, .head_dim = 4});
  problem.query.pop_back();
  EXPECT_EQ(error_text([&] { problem.run(); }),
            "usage: [attention] expected query of shape [1, 2, 1, 4]; found 7 elements");
  problem.query.push_back(0);
  problem.key.push_back(0);
  EXPECT_EQ(error_text([&] { problem.run(); }),
            "usage: [attention] expected key of shape [1, 3, 1, 4]; found 13 elements");
  problem.key.pop_back();
  problem.value.clear();
  EXPECT_EQ(error_text([&] { problem.run(); }),
            "usage: [attention] expected value of shape [1, 3, 1, 1]; found 0 elements");
}

}  // namespace
}  // namespace clearhead::tests
