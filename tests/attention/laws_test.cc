// SPDX-License-Identifier: Apache-2.0
// Laws of attention that hold whatever the numbers are.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "problem.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using capture::Stage;

TEST(Laws, EveryRowOfWeightsSumsToOneHoweverLargeTheScores) {
  for (float factor : {0.01f, 1.0f, 6.0f, 60.0f}) {
    Problem problem({.query_len = 20, .key_len = 700, .num_heads = 2, .num_kv_heads = 2, .head_dim = 64}, 2, factor);
    problem.config.scale = 1.0f;  // scores of thousands with the largest factor
    Everything seen;
    problem.run(&seen);
    const auto weights = seen.values(Stage::weights);
    for (size_t row = 0; row < 40; ++row) {
      double sum = 0;
      for (size_t j = 0; j < 700; ++j) {
        ASSERT_GE(weights[row * 700 + j], 0.0f);
        sum += weights[row * 700 + j];
      }
      EXPECT_NEAR(sum, 1.0, 1e-6) << "row " << row << ", factor " << factor;
    }
  }
}

TEST(Laws, AFutureKeyChangesNothing) {
  Problem problem({.query_len = 300, .key_len = 300, .head_dim = 16, .value_dim = 16});
  problem.config.causal = Causal::top_left;
  const std::vector<float> before = floats(problem.run().head_output);
  for (size_t changed : {1, 150, 255, 256, 299}) {
    Problem other({.query_len = 300, .key_len = 300, .head_dim = 16, .value_dim = 16});
    other.config.causal = Causal::top_left;
    for (size_t i = changed * 16; i < other.key.size(); ++i) {
      other.key[i] = -7.0f * other.key[i];
      other.value[i] = 100.0f;
    }
    const std::vector<float> after = floats(other.run().head_output);
    EXPECT_TRUE(same_bits(std::span(after).first(changed * 16), std::span(before).first(changed * 16)));
    EXPECT_FALSE(same_bits(std::span(after).subspan(changed * 16, 16), std::span(before).subspan(changed * 16, 16)));
  }
}

TEST(Laws, PermutingKeysPermutesWeights) {
  const size_t key_len = 200;
  const Problem problem({.query_len = 4, .key_len = key_len, .head_dim = 24, .value_dim = 8});
  Problem permuted = problem.copy();
  const auto place = [](size_t j) { return j * 77 % 200; };  // 77 and 200 have no common factor
  for (size_t j = 0; j < key_len; ++j) {
    std::copy_n(problem.key.begin() + static_cast<std::ptrdiff_t>(j * 24), 24,
                permuted.key.begin() + static_cast<std::ptrdiff_t>(place(j) * 24));
    std::copy_n(problem.value.begin() + static_cast<std::ptrdiff_t>(j * 8), 8,
                permuted.value.begin() + static_cast<std::ptrdiff_t>(place(j) * 8));
  }
  Everything seen, permuted_seen;
  const auto output = problem.run(&seen), permuted_output = permuted.run(&permuted_seen);
  EXPECT_TRUE(same_bits(floats(output.row_reference), floats(permuted_output.row_reference)));
  EXPECT_LE(largest_difference(floats(output.head_output), floats(permuted_output.head_output)), 1e-6);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < key_len; ++j) {
      EXPECT_EQ(permuted_seen.values(Stage::kernel_scores)[i * key_len + place(j)],
                seen.values(Stage::kernel_scores)[i * key_len + j]);
      EXPECT_NEAR(permuted_seen.values(Stage::weights)[i * key_len + place(j)],
                  seen.values(Stage::weights)[i * key_len + j], 1e-7);
    }
  }
}

TEST(Laws, GroupedHeadsAreHeadsWithRepeatedKeys) {
  const size_t len = 270, heads = 6, kv_heads = 2, dim = 20;
  const Problem grouped({.batch = 2,
                         .query_len = 30,
                         .key_len = len,
                         .num_heads = heads,
                         .num_kv_heads = kv_heads,
                         .head_dim = dim,
                         .value_dim = dim});
  Problem repeated({.batch = 2,
                    .query_len = 30,
                    .key_len = len,
                    .num_heads = heads,
                    .num_kv_heads = heads,
                    .head_dim = dim,
                    .value_dim = dim});
  repeated.query = grouped.query;
  for (size_t row = 0; row < 2 * len; ++row) {
    for (size_t head = 0; head < heads; ++head) {
      const auto from = static_cast<std::ptrdiff_t>((row * kv_heads + head / 3) * dim);
      const auto to = static_cast<std::ptrdiff_t>((row * heads + head) * dim);
      std::copy_n(grouped.key.begin() + from, dim, repeated.key.begin() + to);
      std::copy_n(grouped.value.begin() + from, dim, repeated.value.begin() + to);
    }
  }
  EXPECT_TRUE(same_bits(floats(grouped.run().head_output), floats(repeated.run().head_output)));
}

TEST(Laws, TheCausalRuleIsTheMaskOfTheSameMeaning) {
  for (Causal causal : {Causal::top_left, Causal::offset}) {
    for (size_t offset : {0, 1, 250, 299, 1000}) {
      Problem ruled({.query_len = 50, .key_len = 300, .head_dim = 8, .value_dim = 8});
      Problem masked = ruled.copy();
      ruled.config.causal = causal;
      ruled.config.key_offset = offset;
      std::vector<bool> visible;
      for (size_t i = 0; i < 50; ++i) {
        for (size_t j = 0; j < 300; ++j) visible.push_back(j <= i + (causal == Causal::offset ? offset : 0));
      }
      masked.set_mask(visible, {1, 1, 50, 300});
      EXPECT_TRUE(same_bits(floats(ruled.run().head_output), floats(masked.run().head_output))) << offset;
    }
  }
}

TEST(Laws, AnOutputLiesBetweenTheValues) {
  const Problem problem({.query_len = 10, .key_len = 400, .head_dim = 32, .value_dim = 3});
  const auto [low, high] = std::minmax_element(problem.value.begin(), problem.value.end());
  for (float value : floats(problem.run().head_output)) {
    EXPECT_GE(value, *low);
    EXPECT_LE(value, *high);
  }
}

}  // namespace
}  // namespace clearhead::tests
