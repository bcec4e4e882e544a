// SPDX-License-Identifier: Apache-2.0
// What must not change a single bit: SIMD target, threads, batch companions, what stands behind a mask or a length,
// and whether somebody watches.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "clearhead/base/parallel.h"
#include "problem.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using capture::Stage;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Problem two_sequences(Causal causal = Causal::none) {
  Problem problem(
      {.batch = 2, .query_len = 61, .key_len = 521, .num_heads = 4, .num_kv_heads = 2, .head_dim = 33, .value_dim = 20},
      3, 3.0f);
  problem.config.causal = causal;
  problem.config.key_offset = 460;
  return problem;
}

std::vector<float> stage_bits(const Everything& seen) {
  std::vector<float> all;
  for (Stage stage : {Stage::raw_scores, Stage::scores, Stage::kernel_scores, Stage::weights}) {
    all.insert(all.end(), seen.values(stage).begin(), seen.values(stage).end());
  }
  return all;
}

TEST(Bits, AreTheSameOnEveryTargetWithFusedMultiplyAdd) {
  const Problem problem = two_sequences(Causal::offset);
  std::vector<std::vector<float>> outputs, stages;
  for_each_target([&](const std::string& name) {
    if (!has_fused_multiply_add(name)) return;
    Everything seen;
    outputs.push_back(all_bits(problem.run(&seen)));
    stages.push_back(stage_bits(seen));
    EXPECT_TRUE(same_bits(outputs.back(), outputs.front()));
    EXPECT_TRUE(same_bits(stages.back(), stages.front()));
  });
  EXPECT_FALSE(outputs.empty()) << "no target with fused multiply-add ran";
}

TEST(Bits, DoNotDependOnTheNumberOfThreads) {
  const size_t before = base::num_threads();
  for (size_t query_len : {61, 1}) {  // a single query is cut by its keys
    Problem problem = two_sequences(Causal::offset);
    problem.query_len = query_len;
    problem.query.resize(2 * query_len * 4 * 33);
    base::set_num_threads(1);
    const std::vector<float> one = all_bits(problem.run());
    for (size_t threads : {1, 2, 3, 4, 5, 7, 64}) {
      base::set_num_threads(threads);
      EXPECT_TRUE(same_bits(all_bits(problem.run()), one)) << threads << " threads";
      EXPECT_TRUE(same_bits(all_bits(attention::fused_attention(problem.config, problem.input())), one)) << threads;
    }
  }
  base::set_num_threads(before);
}

TEST(Bits, OfASequenceDoNotDependOnItsBatchCompanions) {
  const Problem both = two_sequences();
  const std::vector<float> together = floats(both.run().head_output);
  for (size_t b = 0; b < 2; ++b) {
    Problem alone = two_sequences();
    alone.batch = 1;
    const auto half = [b](const std::vector<float>& all) {
      const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
      return b == 0 ? std::vector<float>(all.begin(), middle) : std::vector<float>(middle, all.end());
    };
    alone.query = half(both.query);
    alone.key = half(both.key);
    alone.value = half(both.value);
    EXPECT_TRUE(same_bits(floats(alone.run().head_output), half(together)));
  }
}

TEST(Bits, OfAQueryDoNotDependOnTheOtherQueries) {
  const Problem many = two_sequences();
  const auto together = many.run();
  const size_t query_row = 4 * 33, output_row = 4 * 20;
  for (size_t i : {0, 1, 47, 48, 60}) {
    Problem one = two_sequences();
    one.batch = 1;
    one.query_len = 1;
    one.query.assign(many.query.begin() + static_cast<std::ptrdiff_t>(i * query_row),
                     many.query.begin() + static_cast<std::ptrdiff_t>((i + 1) * query_row));
    one.key.resize(many.key.size() / 2);
    one.value.resize(many.value.size() / 2);
    EXPECT_TRUE(
        same_bits(floats(one.run().head_output), together.head_output.as<float>().subspan(i * output_row, output_row)))
        << "query " << i;
  }
}

TEST(Bits, DoNotDependOnKeysBehindTheLength) {
  Problem padded = two_sequences(), plain = two_sequences();
  padded.batch = plain.batch = 1;
  for (Problem* problem : {&padded, &plain}) {
    problem->query.resize(problem->query.size() / 2);
    problem->key.resize(problem->key.size() / 2);
    problem->value.resize(problem->value.size() / 2);
  }
  // The same sequence followed by 70 keys of garbage that a mask hides.
  padded.key_len += 70;
  padded.key.resize(padded.key.size() + 70 * 2 * 33, kNaN);
  padded.value.resize(padded.value.size() + 70 * 2 * 20, kInfinity);
  std::vector<bool> visible(padded.key_len, true);
  std::fill(visible.end() - 70, visible.end(), false);
  padded.set_mask(visible, {1, 1, 1, padded.key_len});
  EXPECT_TRUE(same_bits(all_bits(padded.run()), all_bits(plain.run())));
}

TEST(Bits, DoNotDependOnWhatStandsBehindAMask) {
  for (float poison : {kNaN, kInfinity, -kInfinity, 1e30f}) {
    Problem clean = two_sequences(), poisoned = two_sequences();
    const auto hidden = [](size_t j) { return j % 3 == 1 || (j >= 256 && j < 512); };
    std::vector<bool> visible(clean.key_len);
    for (size_t j = 0; j < clean.key_len; ++j) visible[j] = !hidden(j);
    for (size_t b = 0; b < 2; ++b) {
      for (size_t j = 0; j < clean.key_len; ++j) {
        if (!hidden(j)) continue;
        const size_t row = b * clean.key_len + j;
        std::fill_n(poisoned.key.begin() + static_cast<std::ptrdiff_t>(row * 2 * 33), 2 * 33, poison);
        std::fill_n(poisoned.value.begin() + static_cast<std::ptrdiff_t>(row * 2 * 20), 2 * 20, poison);
      }
    }
    clean.set_mask(visible, {1, 1, 1, clean.key_len});
    poisoned.set_mask(visible, {1, 1, 1, clean.key_len});
    Everything clean_seen, poisoned_seen;
    EXPECT_TRUE(same_bits(all_bits(poisoned.run(&poisoned_seen)), all_bits(clean.run(&clean_seen)))) << poison;
    for (Stage stage : {Stage::scores, Stage::kernel_scores, Stage::weights}) {
      EXPECT_TRUE(same_bits(poisoned_seen.values(stage), clean_seen.values(stage))) << capture::info(stage).name;
    }
  }
}

TEST(Bits, OfAZeroAreThoseOfPlusZero) {
  for (float second : {-1e-45f, -0.0f}) {
    Problem problem({.query_len = 1, .key_len = 2});
    problem.query = {1};
    problem.key = {69, 0};  // the second key weighs 2^-100: its product with a smallest float rounds to -0
    problem.value = {0, second};
    const auto output = problem.run();
    EXPECT_TRUE(same_bits(floats(output.head_output), std::vector<float>{0.0f})) << second;
  }
}

TEST(Bits, AreTheSameWhetherSomebodyWatchesOrNot) {
  for (Causal causal : {Causal::none, Causal::top_left, Causal::offset}) {
    Problem problem = two_sequences(causal);
    problem.set_mask(hashed_values(9, 521, 2.0f), {1, 1, 1, 521});
    Everything seen;
    EXPECT_TRUE(same_bits(all_bits(problem.run(&seen)), all_bits(problem.run())));
  }
}

TEST(Bits, OfWeightsDoNotDependOnWhichStagesAreWatched) {
  const Problem problem = two_sequences(Causal::top_left);
  Everything everything;
  problem.run(&everything);
  StageCollector only({Stage::weights});
  problem.run(&only);
  EXPECT_EQ(only.size(), 1u);
  EXPECT_TRUE(same_bits(only.get(Stage::weights).as<float>(), everything.values(Stage::weights)));
}

}  // namespace
}  // namespace clearhead::tests
