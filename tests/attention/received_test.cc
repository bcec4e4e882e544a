// SPDX-License-Identifier: Apache-2.0
// What each key is given by all queries, against the sum over the weights of the exact path in double.
#include "clearhead/attention/received.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "clearhead/attention/fused.h"
#include "clearhead/base/parallel.h"
#include "problem.h"
#include "tests/support/error_text.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using attention::Precision;
using capture::Stage;

Problem watched(Causal causal) {
  Problem problem(
      {.batch = 2, .query_len = 150, .key_len = 600, .num_heads = 4, .num_kv_heads = 2, .head_dim = 20, .value_dim = 8},
      31, 3.0f);
  problem.config.causal = causal;
  problem.config.key_offset = 455;
  return problem;
}

Problem edited() {
  Problem problem = watched(Causal::none);
  problem.config.sinks = {1, -3, 30, 200};
  problem.config.left_window = 300;
  problem.config.soft_cap = 5.0f;
  problem.config.alibi_slopes = {0.5f, 0.25f, 0.125f, 0.0625f};
  std::vector<bool> visible(600, true);
  std::fill_n(visible.begin() + 200, 200, false);
  problem.set_mask(visible, {1, 1, 1, 600});
  return problem;
}

Problem packed() {
  Problem problem = watched(Causal::offset);
  problem.sequences = {
      {.batch = 0, .query_begin = 0, .query_len = 1, .key_begin = 0, .key_len = 1},
      {.batch = 0, .query_begin = 1, .query_len = 140, .key_begin = 3, .key_len = 597, .key_offset = 9},
      {.batch = 1, .query_begin = 10, .query_len = 90, .key_begin = 77, .key_len = 300, .key_offset = -5}};
  return problem;
}

std::vector<float> received(const Problem& problem) {
  const attention::AttentionOutput output = attention::fused_attention(problem.config, problem.input());
  std::vector<float> found(problem.batch * problem.config.num_heads * problem.key_len, -1.0f);
  attention::attention_received(problem.config, problem.input(), output.row_reference.as<float>(),
                                output.row_sum.as<float>(), found);
  return found;
}

void expect_sums_of_weights(const Problem& problem) {
  Everything seen;
  problem.run(&seen);
  const std::vector<float> found = received(problem);
  const size_t keys = problem.key_len, queries = problem.query_len;
  for (size_t head = 0; head < problem.batch * problem.config.num_heads; ++head) {
    for (size_t key = 0; key < keys; ++key) {
      double sum = 0;
      for (size_t i = 0; i < queries; ++i) sum += seen.values(Stage::weights)[(head * queries + i) * keys + key];
      ASSERT_NEAR(found[head * keys + key], sum, 1e-6 * sum + 1e-12) << "head " << head << " key " << key;
    }
  }
}

TEST(AttentionReceived, IsTheSumOfTheWeightsOnEveryTarget) {
  for_each_target([](const std::string&) {
    for (const Precision precision : {Precision::bfloat16, Precision::single}) {
      for (const Causal causal : {Causal::none, Causal::top_left, Causal::offset}) {
        Problem problem = watched(causal);
        problem.config.precision = precision;
        expect_sums_of_weights(problem);
      }
    }
    expect_sums_of_weights(edited());
    expect_sums_of_weights(packed());
  });
}

TEST(AttentionReceived, HasTheSameBitsOnEveryTargetAndForAnyNumberOfThreads) {
  std::vector<float> first;
  for_each_target([&](const std::string& target) {
    if (!has_fused_multiply_add(target)) return;
    for (const size_t threads : {1, 2, 3, 5}) {
      base::set_num_threads(threads);
      const std::vector<float> found = received(packed());
      if (first.empty()) first = found;
      EXPECT_TRUE(same_bits(found, first)) << threads << " threads";
    }
    base::set_num_threads(base::available_threads());
  });
  EXPECT_FALSE(first.empty()) << "no target with fused multiply-add ran";
}

TEST(AttentionReceived, IsNaNOnlyWhereARowThatIsNaNSees) {
  Problem problem({.query_len = 3, .key_len = 3, .head_dim = 2, .value_dim = 1});
  problem.config.causal = Causal::top_left;
  problem.query[2] = std::numeric_limits<float>::quiet_NaN();  // of the second query
  const std::vector<float> found = received(problem);
  EXPECT_TRUE(std::isnan(found[0]));
  EXPECT_TRUE(std::isnan(found[1]));
  EXPECT_FALSE(std::isnan(found[2]));
}

TEST(AttentionReceived, RefusesASpanOfAnotherSize) {
  const Problem problem({.query_len = 3, .key_len = 4});
  std::vector<float> rows(3), found(3);
  EXPECT_EQ(error_text([&] { attention::attention_received(problem.config, problem.input(), rows, rows, found); }),
            "usage: [attention] expected received of shape [1, 1, 4]; found 3 elements");
}

}  // namespace
}  // namespace clearhead::tests
