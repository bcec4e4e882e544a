// SPDX-License-Identifier: Apache-2.0
// What the one pass says about its rows, against the same sums over the weights of the exact path in double.
#include "clearhead/attention/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "clearhead/attention/fused.h"
#include "problem.h"
#include "tests/support/error_text.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using attention::Precision;
using attention::RowStatistics;
using capture::Stage;

constexpr size_t kQueries = 70, kKeys = 600;
constexpr size_t kSpecial[] = {0, 255, 256, 599};

Problem watched() {
  Problem problem(
      {.query_len = kQueries, .key_len = kKeys, .num_heads = 4, .num_kv_heads = 2, .head_dim = 20, .value_dim = 8}, 13,
      3.0f);
  problem.config.causal = Causal::offset;
  problem.config.key_offset = 540;
  return problem;
}

RowStatistics with_groups() {
  RowStatistics statistics;
  statistics.groups = {{.keys = kSpecial}, {.distance = 0}, {.distance = -1}, {.distance = 1}};
  return statistics;
}

void expect_statistics_of_precision(const Problem& problem) {
  Everything seen;
  problem.run(&seen);
  RowStatistics found = with_groups();
  const auto output = attention::fused_attention(problem.config, problem.input(), &found);
  EXPECT_TRUE(same_bits(floats(output.head_output), floats(problem.run().head_output)));
  for (size_t row = 0; row < 4 * kQueries; ++row) {
    const auto weights = seen.values(Stage::weights).subspan(row * kKeys, kKeys);
    const int64_t position = static_cast<int64_t>(row % kQueries) + problem.config.key_offset;
    double entropy = 0, distance = 0;
    for (size_t j = 0; j < kKeys; ++j) {
      const double p = weights[j];
      if (p > 0) entropy -= p * std::log(p);
      distance += p * std::abs(static_cast<double>(static_cast<int64_t>(j) - position));
    }
    const auto at = [&](int64_t j) {
      return j >= 0 && j < static_cast<int64_t>(kKeys) ? weights[static_cast<size_t>(j)] : 0.0f;
    };
    EXPECT_NEAR(found.entropy[row], entropy, 2e-5) << row;
    EXPECT_NEAR(found.mean_distance[row], distance, 2e-6 * (1 + distance)) << row;
    const size_t top = static_cast<size_t>(std::ranges::max_element(weights) - weights.begin());
    if (weights[top] > 0) {
      EXPECT_EQ(found.strongest_key[row], top) << row;
    }  // else the sink has taken all
    EXPECT_TRUE(same_bits({&found.strongest_weight[row], 1}, weights.subspan(top, 1))) << row;
    const float* mass = &found.group_mass[row * 4];
    EXPECT_NEAR(mass[0], at(0) + at(255) + at(256) + at(599), 1e-6);
    EXPECT_NEAR(mass[1], at(position), 1e-6);
    EXPECT_NEAR(mass[2], at(position - 1), 1e-6);
    EXPECT_NEAR(mass[3], at(position + 1), 1e-6);
  }
}

void expect_statistics_of_weights(Problem& problem) {
  for (Precision precision : {Precision::bfloat16, Precision::single}) {
    problem.config.precision = precision;
    expect_statistics_of_precision(problem);
  }
}

TEST(RowStatistics, AreThoseOfTheWeightsOnEveryTarget) {
  for_each_target([](const std::string&) {
    Problem problem = watched();
    expect_statistics_of_weights(problem);
    problem.config.causal = Causal::none;
    expect_statistics_of_weights(problem);
    problem.config.left_window = 280;
    problem.config.sinks = {1, -3, 30, 200};
    expect_statistics_of_weights(problem);
    std::vector<bool> visible(kKeys, true);
    std::fill_n(visible.begin() + 200, 200, false);
    problem.set_mask(visible, {1, 1, 1, kKeys});
    expect_statistics_of_weights(problem);
  });
}

TEST(RowStatistics, HaveTheSameBitsOnEveryTargetWithFusedMultiplyAdd) {
  std::vector<float> first;
  for_each_target([&](const std::string& name) {
    if (!has_fused_multiply_add(name)) return;
    RowStatistics found = with_groups();
    attention::fused_attention(watched().config, watched().input(), &found);
    std::vector<float> all = found.entropy;
    for (const auto* more : {&found.mean_distance, &found.strongest_weight, &found.group_mass}) {
      all.insert(all.end(), more->begin(), more->end());
    }
    if (first.empty()) first = all;
    EXPECT_TRUE(same_bits(all, first));
  });
  EXPECT_FALSE(first.empty()) << "no target with fused multiply-add ran";
}

TEST(RowStatistics, AreZeroWhereNothingIsSeenAndNaNWhereTheRowIs) {
  Problem problem = watched();
  problem.config.key_offset = -1;  // the first query sees nothing
  problem.query[2 * 4 * 20] = std::numeric_limits<float>::quiet_NaN();
  RowStatistics found = with_groups();
  attention::fused_attention(problem.config, problem.input(), &found);
  EXPECT_EQ(found.entropy[0], 0.0f);
  EXPECT_EQ(found.strongest_weight[0], 0.0f);
  EXPECT_EQ(found.strongest_weight[1], 1.0f);
  EXPECT_EQ(found.entropy[1], 0.0f);
  EXPECT_TRUE(std::isnan(found.entropy[2]));
  EXPECT_TRUE(std::isnan(found.group_mass[2 * 4 + 1]));
  EXPECT_FALSE(std::isnan(found.entropy[3]));
}

TEST(RowStatistics, OfEqualScoresNameTheLowestKey) {
  Problem problem({.query_len = 1, .key_len = 300});
  problem.query = {0};
  RowStatistics found;
  attention::fused_attention(problem.config, problem.input(), &found);
  EXPECT_EQ(found.strongest_key[0], 0u);
  EXPECT_NEAR(found.entropy[0], std::log(300.0), 1e-5);
  EXPECT_NEAR(found.mean_distance[0], 149.5, 1e-3);
}

TEST(RowStatistics, RefuseTooManyGroups) {
  const Problem problem = watched();
  RowStatistics many;
  many.groups.resize(9);
  EXPECT_EQ(error_text([&] { attention::fused_attention(problem.config, problem.input(), &many); }),
            "usage: [attention statistics] expected at most 8 groups of keys; found 9");
}

}  // namespace
}  // namespace clearhead::tests
