// SPDX-License-Identifier: Apache-2.0
// Windows, soft cap, ALiBi, sinks and sequences: each against the reference in double, against the mask or the
// computation of the same meaning, and where it must not change a bit.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>

#include "clearhead/attention/score_recipe.h"
#include "clearhead/base/parallel.h"
#include "clearhead/kernels/elementary.h"
#include "problem.h"
#include "tests/support/error_text.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using attention::Sequence;
using capture::Stage;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Behaviour {
  std::string name;
  std::function<void(Problem&)> apply;
};

void PrintTo(const Behaviour& one, std::ostream* out) { *out << one.name; }

const std::vector<float> kSlopes = {0.25f, 0.0625f, -0.015625f, 0.5f}, kSinks = {1.5f, -2.0f, -kInfinity, 8.0f};

std::vector<Behaviour> behaviours() {
  const auto offset = [](Problem& p) {
    p.config.causal = Causal::offset;
    p.config.key_offset = attention::bottom_right(p.query_len, p.key_len);
  };
  const auto sequences = [](Problem& p) {
    // Row 0 holds two sequences behind each other, row 1 one with padding on both sides; some queries are in none.
    p.sequences = {{0, 0, 20, 0, 259, 239}, {0, 20, 41, 259, 250, 7}, {1, 3, 55, 9, 500, 460}};
  };
  return {
      {"left_window", [](Problem& p) { p.config.left_window = 7; }},
      {"windows", [=](Problem& p) { offset(p), p.config.left_window = 300, p.config.right_window = 0; }},
      {"window_without_causal",
       [](Problem& p) { p.config.key_offset = 400, p.config.left_window = 90, p.config.right_window = 3; }},
      {"soft_cap", [](Problem& p) { p.config.soft_cap = 5.0f; }},
      {"alibi", [=](Problem& p) { offset(p), p.config.alibi_slopes = kSlopes; }},
      {"sinks", [](Problem& p) { p.config.sinks = kSinks; }},
      {"sequences", sequences},
      {"float_mask",
       [](Problem& p) {
         p.set_mask(hashed_values(9, p.query_len * p.key_len, 4.0f), {1, 1, p.query_len, p.key_len});
       }},
      {"everything",
       [=](Problem& p) {
         offset(p), sequences(p);
         p.config.left_window = 270, p.config.soft_cap = 8.0f;
         p.config.alibi_slopes = kSlopes, p.config.sinks = kSinks;
         std::vector<float> bias = hashed_values(9, p.query_len * p.key_len, 4.0f);
         for (size_t i = 0; i < bias.size(); i += 3) bias[i] = -kInfinity;
         p.set_mask(bias, {1, 1, p.query_len, p.key_len});
       }},
  };
}

class Behaviours : public testing::TestWithParam<Behaviour> {
 protected:
  Behaviours()
      : problem_({.batch = 2,
                  .query_len = 61,
                  .key_len = 521,
                  .num_heads = 4,
                  .num_kv_heads = 2,
                  .head_dim = 33,
                  .value_dim = 20},
                 3, 3.0f) {
    GetParam().apply(problem_);
  }

  Problem problem_;
};

TEST_P(Behaviours, AgreeWithTheReference) {
  Everything seen;
  const auto output = problem_.run(&seen);
  const auto reference = problem_.reference();
  EXPECT_LE(largest_difference(floats(output.head_output), reference.head_output), 3e-6);
  EXPECT_LE(largest_difference(seen.values(Stage::weights), reference.weights), 1e-6);
  const auto scores = seen.values(Stage::scores), kernel_scores = seen.values(Stage::kernel_scores);
  size_t seen_keys = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    ASSERT_EQ(std::isinf(scores[i]), std::isinf(reference.scores[i])) << i;
    ASSERT_EQ(std::isinf(kernel_scores[i]), std::isinf(scores[i])) << i;
    if (std::isinf(scores[i])) {
      ASSERT_EQ(seen.values(Stage::weights)[i], 0.0f);
      continue;
    }
    ++seen_keys;
    ASSERT_NEAR(scores[i], reference.scores[i], 3e-5);
    ASSERT_NEAR(kernel_scores[i], reference.scores[i] * std::numbers::log2e, 5e-5);
  }
  EXPECT_GT(seen_keys, 100u);
  for (size_t row = 0; row < output.row_sum.elements(); ++row) {
    const double reference_row = reference.row_reference[row], found = output.row_reference.as<float>()[row];
    if (std::isinf(reference_row)) {
      ASSERT_EQ(found, reference_row);
      ASSERT_EQ(output.row_sum.as<float>()[row], 0.0f);
      continue;
    }
    const double lse = found + std::log2(output.row_sum.as<float>()[row]);
    ASSERT_NEAR(lse, reference_row + std::log2(reference.row_sum[row]), 1e-5);
  }
}

TEST_P(Behaviours, HaveTheSameBitsOnEveryTargetAndForAnyNumberOfThreads) {
  const std::vector<float> wanted = all_bits(problem_.run());
  for_each_target([&](const std::string& name) {
    if (has_fused_multiply_add(name)) {
      EXPECT_TRUE(same_bits(all_bits(problem_.run()), wanted));
    }
  });
  const size_t before = base::num_threads();
  for (size_t threads : {1, 3, 5}) {
    base::set_num_threads(threads);
    EXPECT_TRUE(same_bits(all_bits(problem_.run()), wanted)) << threads << " threads";
  }
  base::set_num_threads(before);
}

TEST_P(Behaviours, AreNotChangedByWatching) {
  Everything seen;
  EXPECT_TRUE(same_bits(all_bits(problem_.run(&seen)), all_bits(problem_.run())));
}

TEST_P(Behaviours, LetRowsSumToOneWithTheirSink) {
  Everything seen;
  const auto output = problem_.run(&seen);
  const size_t keys = problem_.key_len, heads = problem_.config.num_heads;
  for (size_t row = 0; row < output.row_sum.elements(); ++row) {
    double sum = 0;
    for (float weight : seen.values(Stage::weights).subspan(row * keys, keys)) sum += weight;
    const double reference = output.row_reference.as<float>()[row], row_sum = output.row_sum.as<float>()[row];
    if (row_sum != 0 && !problem_.config.sinks.empty()) {
      const double sink = problem_.config.sinks[row / problem_.query_len % heads];
      sum += std::exp2(sink * std::numbers::log2e - reference) / row_sum;
    }
    ASSERT_NEAR(sum, row_sum == 0 ? 0 : 1, 1e-6) << row;
  }
}

TEST_P(Behaviours, TouchNothingThatMayNotBeSeen) {
  Everything seen;
  const std::vector<float> wanted = all_bits(problem_.run(&seen));
  const size_t queries = problem_.query_len, keys = problem_.key_len, heads = problem_.config.num_heads;
  size_t poisoned = 0;
  for (size_t key = 0; key < 2 * keys; ++key) {
    bool hidden = true;  // from every query and head
    for (size_t row = 0; hidden && row < heads * queries; ++row) {
      const size_t at = (key / keys * heads * queries + row) * keys + key % keys;
      hidden = std::isinf(seen.values(Stage::kernel_scores)[at]);
    }
    if (!hidden) continue;
    ++poisoned;
    const float poison = key % 2 == 0 ? kNaN : kInfinity;
    std::fill_n(problem_.key.begin() + static_cast<std::ptrdiff_t>(key * 2 * 33), 2 * 33, poison);
    std::fill_n(problem_.value.begin() + static_cast<std::ptrdiff_t>(key * 2 * 20), 2 * 20, poison);
  }
  EXPECT_TRUE(same_bits(all_bits(problem_.run()), wanted)) << poisoned << " keys";
}

INSTANTIATE_TEST_SUITE_P(All, Behaviours, testing::ValuesIn(behaviours()),
                         [](const auto& test) { return test.param.name; });

// Scores of 0 and values 0, 1, 2, ...: a row gives the mean of the places that it sees.
Problem counting(size_t query_len, size_t key_len) {
  std::vector<float> values(key_len);
  std::iota(values.begin(), values.end(), 0.0f);
  return equal_scores(query_len, std::move(values));
}

TEST(Windows, CountKeysBesideTheOwnOne) {
  Problem problem = counting(10, 10);
  problem.config.causal = Causal::top_left;
  problem.config.left_window = 2;  // three keys with the own one
  EXPECT_EQ(head_output(problem)[5], 4.0f);
  problem.config.left_window = 3;
  EXPECT_EQ(head_output(problem)[5], 3.5f);
  problem.config.causal = Causal::none;
  problem.config.right_window = 1;
  EXPECT_EQ(head_output(problem)[5], 4.0f);
  EXPECT_EQ(head_output(problem)[9], 7.5f);
}

TEST(Windows, OfZeroSeeTheOwnKeyAndLongOnesSeeAll) {
  Problem problem = counting(4, 4);
  problem.config.left_window = problem.config.right_window = 0;
  EXPECT_EQ(head_output(problem), (std::vector<float>{0, 1, 2, 3}));
  for (size_t window : {size_t{4}, size_t{14}, std::numeric_limits<size_t>::max()}) {
    problem.config.left_window = problem.config.right_window = window;
    EXPECT_EQ(head_output(problem), (std::vector<float>{1.5f, 1.5f, 1.5f, 1.5f})) << window;
  }
}

TEST(Windows, OfEverySizeAreTheMaskOfTheSameMeaning) {
  const size_t queries = 40, keys = 600;
  for (int64_t offset : {-20, 0, 300, 560, 590}) {
    for (size_t left : {0, 3, 255, 256, 1000}) {
      Problem ruled({.query_len = queries, .key_len = keys, .head_dim = 8, .value_dim = 8});
      Problem masked = ruled.copy();
      ruled.config.key_offset = offset;
      ruled.config.left_window = left;
      ruled.config.right_window = 1;
      std::vector<bool> visible;
      for (int64_t i = 0; i < 40; ++i) {
        for (int64_t j = 0; j < 600; ++j) {
          visible.push_back(j >= i + offset - static_cast<int64_t>(left) && j <= i + offset + 1);
        }
      }
      masked.set_mask(visible, {1, 1, queries, keys});
      EXPECT_TRUE(same_bits(all_bits(ruled.run()), all_bits(masked.run()))) << offset << " " << left;
    }
  }
}

TEST(Alignment, BottomRightLetsTheLastQuerySeeTheLastKey) {
  Problem problem = counting(2, 5);
  problem.config.causal = Causal::offset;
  problem.config.key_offset = attention::bottom_right(2, 5);
  EXPECT_EQ(head_output(problem), (std::vector<float>{1.5f, 2}));
  Problem more = counting(5, 2);
  more.config.causal = Causal::offset;
  more.config.key_offset = attention::bottom_right(5, 2);
  const auto output = more.run();
  EXPECT_EQ(floats(output.head_output), (std::vector<float>{0, 0, 0, 0, 0.5f}));
  EXPECT_EQ(floats(output.row_sum), (std::vector<float>{0, 0, 0, 1, 2}));
  EXPECT_EQ(output.row_reference.as<float>()[2], -kInfinity);
}

TEST(SoftCap, IsTheCapTimesTanhByTheRecipe) {
  Problem problem({.query_len = 1, .key_len = 300, .head_dim = 1}, 5, 6.0f);
  problem.query[0] = 9;
  problem.config.soft_cap = 2.0f;
  Everything seen;
  problem.run(&seen);
  const attention::ScoreRecipe recipe(problem.config);
  for (size_t j = 0; j < 300; ++j) {
    const float dot = problem.query[0] * recipe.query_factor * problem.key[j];
    EXPECT_EQ(seen.values(Stage::kernel_scores)[j], kernels::tanh(dot) * recipe.cap_factor);
    EXPECT_LE(std::abs(seen.values(Stage::scores)[j]), 2.0f);
  }
}

TEST(SoftCap, DoesNotLiftWhatIsHiddenOrBehindTheLength) {
  for_each_target([](const std::string&) {
    Problem problem = counting(1, 257);  // one key in the second tile, whose panel is filled up
    problem.config.soft_cap = 50.0f;
    std::ranges::fill(problem.value, 1.0f);
    EXPECT_EQ(head_output(problem), std::vector<float>{1.0f});
    for (float poison : {kNaN, 1e30f}) {
      problem.key.resize(300, poison);
      problem.value.resize(300, poison);
      problem.key_len = 300;
      problem.sequences = {{0, 0, 1, 0, 257}};
      EXPECT_EQ(head_output(problem), std::vector<float>{1.0f});
    }
  });
}

TEST(Alibi, WeighsByDistanceInPositionsOfTheSequence) {
  Problem problem = counting(1, 3);
  problem.config.alibi_slopes = {1.0f};
  problem.config.key_offset = 2;
  Everything seen;
  problem.run(&seen);
  EXPECT_EQ(floats(seen.get(Stage::scores)), (std::vector<float>{-2, -1, 0}));
  Problem packed = counting(1, 5);  // the same three keys behind two others
  packed.config = problem.config;
  packed.sequences = {{0, 0, 1, 2, 3, 2}};
  Everything packed_seen;
  packed.run(&packed_seen);
  EXPECT_EQ(floats(packed_seen.get(Stage::scores)), (std::vector<float>{-kInfinity, -kInfinity, -2, -1, 0}));
}

TEST(Alibi, HasASlopeOfItsOwnForEachHeadHoweverManyThereAre) {
  Problem problem(
      {.batch = 1, .query_len = 1, .key_len = 3, .num_heads = 6, .num_kv_heads = 2, .head_dim = 1, .value_dim = 1}, 1);
  std::ranges::fill(problem.query, 0.0f);
  problem.config.alibi_slopes = {.25f, .0625f, .015625f, .00390625f, .5f, .125f};
  problem.config.key_offset = 2;
  Everything seen;
  problem.run(&seen);
  std::vector<float> want;
  for (float slope : problem.config.alibi_slopes) want.insert(want.end(), {-2 * slope, -slope, 0.0f});
  EXPECT_EQ(floats(seen.get(Stage::scores)), want);
}

TEST(Sinks, TakeTheirShareAndAreFlaggedAlone) {
  Problem problem = counting(2, 2);
  problem.value = {3, 5};
  problem.config.sinks = {0.0f};
  problem.set_mask(std::vector<bool>{true, true, false, false}, {1, 1, 2, 2});
  Everything seen;
  const auto output = problem.run(&seen);
  EXPECT_NEAR(output.head_output.as<float>()[0], 8.0f / 3, 1e-6);
  EXPECT_EQ(output.head_output.as<float>()[1], 0.0f);
  EXPECT_EQ(floats(output.row_sum), (std::vector<float>{3, 0}));
  EXPECT_EQ(floats(output.row_reference), (std::vector<float>{0, -kInfinity}));
  EXPECT_EQ(floats(seen.get(Stage::weights)), (std::vector<float>{1 / 3.0f, 1 / 3.0f, 0, 0}));
  problem.config.sinks = {200.0f};  // far above every score: takes everything, and nothing overflows
  EXPECT_EQ(head_output(problem), (std::vector<float>{0, 0}));
  Problem without = counting(2, 300), low = counting(2, 300);
  low.config.sinks = {-kInfinity};
  EXPECT_TRUE(same_bits(all_bits(low.run()), all_bits(without.run())));
}

TEST(AttentionConfig, RefusesBehavioursThatCannotBeComputed) {
  const auto error = [](const std::function<void(attention::AttentionConfig&)>& change) {
    attention::AttentionConfig config{.num_heads = 2};
    change(config);
    return error_text([&] { config.check(); });
  };
  const std::string prefix = "usage: [attention] expected ";
  for (const auto& [cap, shown] : {std::pair(0.0f, "0"), {-1.0f, "-1"}, {kNaN, "nan"}, {kInfinity, "inf"}}) {
    EXPECT_EQ(error([cap = cap](auto& config) { config.soft_cap = cap; }),
              prefix + "a soft cap greater than 0 that the scale can be divided by; found " + shown);
  }
  EXPECT_EQ(error([](auto& config) { config.alibi_slopes = {1}; }), prefix + "2 ALiBi slopes, one a head; found 1");
  EXPECT_EQ(error([](auto& config) { config.alibi_slopes = {1, kNaN}; }), prefix + "a finite ALiBi slope; found nan");
  EXPECT_EQ(error([](auto& config) { config.sinks = {1, 2, 3}; }), prefix + "2 sinks, one a head; found 3");
  EXPECT_EQ(error([](auto& config) {
              config.sinks = {1, kInfinity};
            }),
            prefix + "a sink that is finite or -infinity; found inf");
  EXPECT_EQ(error([](auto& config) { config.sinks = {1, -kInfinity}; }), "no error");
}

TEST(AttentionConfig, SaysItsBehavioursAsJson) {
  attention::AttentionConfig config{.num_heads = 2};
  config.left_window = 4;
  config.right_window = 0;
  config.soft_cap = 50.0f;
  config.alibi_slopes = {0.5f, 0.25f};
  config.sinks = {1.5f, -kInfinity};
  config.key_offset = -3;
  config.precision = attention::Precision::bfloat16;
  EXPECT_EQ(config.json(),
            R"({"num_heads": 2, "num_kv_heads": 1, "head_dim": 1, "value_dim": 1, "scale": 1, "causal": "none", )"
            R"("key_offset": -3, "left_window": 4, "right_window": 0, "soft_cap": 50, )"
            R"("alibi_slopes": [0.5, 0.25], "sinks": [1.5, null], "precision": "bfloat16"})");
}

}  // namespace
}  // namespace clearhead::tests
