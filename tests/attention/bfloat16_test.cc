// SPDX-License-Identifier: Apache-2.0
// Attention in bfloat16: what it computes, how near it is to the truth, and what must not change its bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "clearhead/attention/fused.h"
#include "clearhead/base/parallel.h"
#include "clearhead/tensor/dtype.h"
#include "problem.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using attention::Precision;
using capture::Stage;

float rounded(float x) { return tensor::to_float(tensor::to_bfloat16(x)); }

// Numbers that are bfloat16 already, so that nothing is lost before the computation.
Problem in_bfloat16(const ProblemSizes& sizes, uint64_t seed = 5, float factor = 3.0f) {
  Problem problem(sizes, seed, factor);
  for (auto* values : {&problem.query, &problem.key, &problem.value})
    std::ranges::transform(*values, values->begin(), rounded);
  problem.config.precision = Precision::bfloat16;
  return problem;
}

TEST(BFloat16, ShowsWeightsAsExactAsThoseOfFloat) {
  Problem problem = in_bfloat16({.query_len = 20, .key_len = 600, .head_dim = 33, .value_dim = 8});
  Everything seen;
  problem.run(&seen);
  const auto truth = problem.reference();
  EXPECT_LT(largest_difference(seen.values(Stage::weights), truth.weights), 1e-6);
  EXPECT_LT(largest_difference(seen.values(Stage::raw_scores), truth.raw_scores), 1e-4);
  for (size_t row = 0; row < 20; ++row) {
    double sum = 0;
    for (float weight : seen.values(Stage::weights).subspan(row * 600, 600)) sum += weight;
    EXPECT_NEAR(sum, 1.0, 1e-6);
  }
}

TEST(BFloat16, RoundsWhatIsNoBFloat16) {
  Problem fine({.query_len = 7, .key_len = 300, .head_dim = 21, .value_dim = 13}, 8, 3.0f), coarse = fine.copy();
  fine.config.precision = coarse.config.precision = Precision::bfloat16;
  for (auto* values : {&coarse.query, &coarse.key, &coarse.value}) {
    std::ranges::transform(*values, values->begin(), rounded);
  }
  EXPECT_TRUE(same_bits(all_bits(fine.run()), all_bits(coarse.run())));
  fine.config.precision = Precision::single;
  EXPECT_FALSE(same_bits(all_bits(fine.run()), all_bits(coarse.run())));
}

TEST(BFloat16, AddsUpWeightsBeforeTheyAreRounded) {
  Problem problem = equal_scores(1, std::vector<float>(5000, 1.0f));
  problem.config.precision = Precision::bfloat16;
  const auto output = attention::fused_attention(problem.config, problem.input());
  EXPECT_EQ(floats(output.row_sum)[0], 5000.0f);
  EXPECT_EQ(floats(output.head_output)[0], 1.0f);
}

// A grouped, windowed, capped problem with everything on.
Problem everything() {
  Problem problem = in_bfloat16({.batch = 2,
                                 .query_len = 61,
                                 .key_len = 521,
                                 .num_heads = 4,
                                 .num_kv_heads = 2,
                                 .head_dim = 33,
                                 .value_dim = 20});
  problem.config.causal = Causal::offset;
  problem.config.key_offset = 460;
  problem.config.left_window = 300;
  problem.config.soft_cap = 9.0f;
  problem.config.alibi_slopes = {.5f, .25f, .125f, .0625f};
  problem.config.sinks = {1, -2, 3, 30};
  return problem;
}

TEST(BFloat16, HasTheSameBitsOnEveryTargetWithFusedMultiplyAddAndForAnyThreads) {
  const Problem problem = everything();
  std::vector<float> first;
  const size_t before = base::num_threads();
  for_each_target([&](const std::string& name) {
    if (!has_fused_multiply_add(name)) return;
    for (size_t threads : {1, 2, 3, 5}) {
      base::set_num_threads(threads);
      const auto bits = all_bits(attention::fused_attention(problem.config, problem.input()));
      if (first.empty()) first = bits;
      EXPECT_TRUE(same_bits(bits, first)) << threads << " threads";
    }
  });
  base::set_num_threads(before);
  EXPECT_FALSE(first.empty()) << "no target with fused multiply-add ran";
}

// Queries [first, first + count) alone, as a later chunk of a run that sees keys [0, key_len) only.
Problem chunk(const Problem& whole, size_t first, size_t count, size_t key_len) {
  Problem part = whole.copy();
  part.batch = 1;
  part.query_len = count, part.key_len = key_len;
  part.config.key_offset = whole.config.key_offset + static_cast<int64_t>(first);
  const auto cut = [](const std::vector<float>& values, size_t begin, size_t len, size_t width) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(begin * width);
    return std::vector<float>(at, at + static_cast<std::ptrdiff_t>(len * width));
  };
  part.query = cut(whole.query, first, count, 4 * 33);
  part.key = cut(whole.key, 0, key_len, 2 * 33);
  part.value = cut(whole.value, 0, key_len, 2 * 20);
  return part;
}

TEST(BFloat16, HasTheSameBitsInChunksAndOneByOneAsInOnePass) {
  const Problem problem = everything();
  const std::vector<float> whole = floats(attention::fused_attention(problem.config, problem.input()).head_output);
  for (size_t count : {1, 7, 60}) {
    for (size_t first = 0; first < 61; first += count) {
      const size_t len = std::min<size_t>(count, 61 - first);
      const Problem part = chunk(problem, first, len, 460 + first + len);  // no key behind the last query yet
      const auto found = floats(attention::fused_attention(part.config, part.input()).head_output);
      EXPECT_TRUE(same_bits(found, std::span(whole).subspan(first * 80, len * 80))) << first << " " << len;
    }
  }
}

TEST(BFloat16, LetsWhatBecomesInfinityWhenRoundedTouchOnlyRowsThatSeeIt) {
  for (size_t odd : {300, 301}) {
    Problem problem = in_bfloat16({.query_len = 2, .key_len = 302, .head_dim = 8, .value_dim = 3});
    std::vector<bool> visible(2 * 302, true);
    visible[odd] = false;  // for the first query
    problem.set_mask(visible, {1, 1, 2, 302});
    const auto clean = floats(attention::fused_attention(problem.config, problem.input()).head_output);
    problem.value[odd * 3] = std::numeric_limits<float>::max();
    const auto found = floats(attention::fused_attention(problem.config, problem.input()).head_output);
    EXPECT_TRUE(same_bits(std::span(found).first(3), std::span(clean).first(3)));
    EXPECT_EQ(found[3], std::numeric_limits<float>::infinity());
    EXPECT_EQ(found[4], clean[4]);
  }
}

}  // namespace
}  // namespace clearhead::tests
