// SPDX-License-Identifier: Apache-2.0
// Weights that are rebuilt when somebody looks, against those that the exact path shows, bit for bit.
#include "clearhead/attention/weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "clearhead/attention/fused.h"
#include "clearhead/attention/watched.h"
#include "problem.h"
#include "tests/support/error_text.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using attention::Precision;
using attention::RebuiltWeights;
using capture::Pool;
using capture::Stage;

constexpr size_t kQueries = 40, kKeys = 600;

Problem watched() {
  Problem problem({.batch = 2,
                   .query_len = kQueries,
                   .key_len = kKeys,
                   .num_heads = 4,
                   .num_kv_heads = 2,
                   .head_dim = 20,
                   .value_dim = 8},
                  11, 3.0f);
  problem.config.causal = Causal::offset;
  problem.config.key_offset = 540;
  return problem;
}

// A source on the rows that the fused path kept.
struct Rebuilt {
  explicit Rebuilt(const Problem& problem)
      : output(attention::fused_attention(problem.config, problem.input())),
        source(problem.config, problem.input(), {output.row_reference.as<float>(), output.row_sum.as<float>()}) {}

  attention::AttentionOutput output;
  RebuiltWeights source;
};

void expect_views_of_precision(const Problem& problem) {
  Everything seen;
  problem.run(&seen);
  const std::span<const float> weights = seen.values(Stage::weights);
  const Rebuilt rebuilt(problem);
  std::vector<float> row(kKeys), column(kQueries), tile(7 * 300), rows(3 * kKeys);
  for (size_t b = 0; b < 2; ++b) {
    for (size_t i : {0, 7, 25, 39}) {
      rebuilt.source.rows(b, 1, 3, i, rows);  // two that share their keys, and one before them
      for (size_t head = 1; head < 4; ++head) {
        const auto want = weights.subspan(((b * 4 + head) * kQueries + i) * kKeys, kKeys);
        ASSERT_TRUE(same_bits(std::span(rows).subspan((head - 1) * kKeys, kKeys), want))
            << b << " " << head << " " << i;
      }
    }
    for (size_t head = 0; head < 4; ++head) {
      const auto whole = weights.subspan((b * 4 + head) * kQueries * kKeys, kQueries * kKeys);
      for (size_t i = 0; i < kQueries; ++i) {
        rebuilt.source.row(b, head, i, row);
        ASSERT_TRUE(same_bits(row, whole.subspan(i * kKeys, kKeys))) << b << " " << head << " " << i;
      }
      for (size_t j : {0, 17, 255, 256, 599}) {
        rebuilt.source.column(b, head, j, column);
        for (size_t i = 0; i < kQueries; ++i) ASSERT_TRUE(same_bits({&column[i], 1}, whole.subspan(i * kKeys + j, 1)));
      }
      rebuilt.source.tile({b, head, 30, 7, 211, 300}, tile);
      for (size_t i = 0; i < 7; ++i) {
        ASSERT_TRUE(same_bits(std::span(tile).subspan(i * 300, 300), whole.subspan((30 + i) * kKeys + 211, 300)));
      }
    }
  }
}

void expect_every_view(Problem& problem) {
  for (Precision precision : {Precision::bfloat16, Precision::single}) {
    problem.config.precision = precision;
    expect_views_of_precision(problem);
  }
}

TEST(RebuiltWeights, HaveTheBitsOfExactForEveryBehaviourOnEveryTarget) {
  for_each_target([](const std::string&) {
    Problem problem = watched();
    expect_every_view(problem);
    problem.config.left_window = 200;
    problem.config.soft_cap = 6.0f;
    problem.config.alibi_slopes = {.5f, .25f, .125f, .0625f};
    problem.config.sinks = {1, 2, 3, 30};
    expect_every_view(problem);
    std::vector<float> bias = hashed_values(3, kQueries * kKeys, 2.0f);
    for (size_t i = 0; i < bias.size(); i += 3) bias[i] = -std::numeric_limits<float>::infinity();
    std::fill_n(bias.begin(), kKeys, -1e30f);  // a row that sees nothing
    problem.set_mask(bias, {1, 1, kQueries, kKeys});
    problem.query[25 * 4 * 20] = std::numeric_limits<float>::quiet_NaN();
    expect_every_view(problem);
  });
}

TEST(RebuiltWeights, AreZeroBetweenSequences) {
  Problem problem = watched();
  problem.sequences = {{0, 0, 10, 0, 100, 90}, {0, 12, 28, 130, 400, 372}, {1, 0, 40, 300, 300, 260}};
  expect_every_view(problem);
}

TEST(RebuiltWeights, ArePooledByMaximumAndMean) {
  const Problem problem = watched();
  Everything seen;
  problem.run(&seen);
  const auto whole = seen.values(Stage::weights).subspan(kQueries * kKeys, kQueries * kKeys);
  const Rebuilt rebuilt(problem);
  std::vector<float> largest(3 * 7), mean(3 * 7);
  rebuilt.source.pooled({0, 1, 0, kQueries, 0, kKeys}, 3, 7, Pool::max, largest);
  rebuilt.source.pooled({0, 1, 0, kQueries, 0, kKeys}, 3, 7, Pool::mean, mean);
  for (size_t r = 0; r < 3; ++r) {
    for (size_t c = 0; c < 7; ++c) {
      double top = 0, sum = 0, count = 0;
      for (size_t i = kQueries * r / 3; i < kQueries * (r + 1) / 3; ++i) {
        for (size_t j = kKeys * c / 7; j < kKeys * (c + 1) / 7; ++j) {
          top = std::max(top, double{whole[i * kKeys + j]});
          sum += whole[i * kKeys + j];
          ++count;
        }
      }
      EXPECT_EQ(largest[r * 7 + c], static_cast<float>(top));
      EXPECT_EQ(mean[r * 7 + c], static_cast<float>(sum / count));
    }
  }
}

TEST(RebuiltWeights, RefuseAreasOutside) {
  const Rebuilt rebuilt(watched());
  std::vector<float> room(600);
  EXPECT_EQ(error_text([&] { rebuilt.source.row(0, 0, 40, room); }),
            "usage: [weights] expected queries inside 40; found 1 from 40 on");
  EXPECT_EQ(error_text([&] { rebuilt.source.row(0, 4, 0, room); }),
            "usage: [weights] expected a head inside 4; found 1 from 4 on");
  EXPECT_EQ(error_text([&] { rebuilt.source.rows(0, 2, 3, 0, room); }),
            "usage: [weights] expected heads inside 4; found 3 from 2 on");
  EXPECT_EQ(error_text([&] { rebuilt.source.rows(0, 2, 2, 0, room); }),
            "usage: [weights] expected room for [2, 600]; found 600 elements");
  EXPECT_EQ(error_text([&] { rebuilt.source.column(0, 0, 0, room); }),
            "usage: [weights] expected room for [40, 1]; found 600 elements");
  EXPECT_EQ(error_text([&] {
              rebuilt.source.pooled({0, 0, 0, 1, 0, 600}, 2, 300, Pool::max, room);
            }),
            "usage: [weights] expected at most 1 x 600 cells; found 2 x 300");
}

// Everything that a watched layer shows, against the equation as written.
void expect_shown_as_written(const Problem& problem) {
  Everything written, watched;
  const auto exact = problem.run(&written);
  attention::AttentionOutput output = attention::fused_attention(problem.config, problem.input());
  attention::FusedAttention fused;
  attention::watched_attention(
      problem.config, problem.input(),
      {output.head_output.as<float>(), output.row_reference.as<float>(), output.row_sum.as<float>()}, fused,
      {&watched, 2});
  EXPECT_TRUE(same_bits(all_bits(output), all_bits(exact)));
  for (Stage stage :
       {Stage::raw_scores, Stage::scores, Stage::kernel_scores, Stage::row_reference, Stage::row_sum, Stage::weights}) {
    EXPECT_TRUE(same_bits(watched.get(stage, 2).as<float>(), written.get(stage).as<float>()))
        << capture::info(stage).name;
    EXPECT_EQ(watched.get(stage, 2).shape(), written.get(stage).shape());
  }
}

TEST(WatchedAttention, ShowsWhatTheEquationAsWrittenShows) {
  Problem problem = watched();
  expect_shown_as_written(problem);
  problem.config.left_window = 200;
  problem.config.soft_cap = 6.0f;
  problem.config.alibi_slopes = {.5f, .25f, .125f, .0625f};
  problem.config.sinks = {1, 2, 3, 30};
  expect_shown_as_written(problem);
  std::vector<float> bias = hashed_values(3, kQueries * kKeys, 2.0f);
  for (size_t i = 0; i < bias.size(); i += 3) bias[i] = -std::numeric_limits<float>::infinity();
  problem.set_mask(bias, {1, 1, kQueries, kKeys});
  expect_shown_as_written(problem);
  problem.mask = {};
  problem.sequences = {{0, 0, 10, 0, 100, 90}, {0, 12, 28, 130, 400, 372}, {1, 0, 40, 300, 300, 260}};
  expect_shown_as_written(problem);
}

// Heads 1 and 3 with the kv heads that they read.
TEST(RebuiltWeights, NeedOnlyTheHeadsThatAreLookedAt) {
  const Problem problem = watched();
  Everything seen;
  problem.run(&seen);
  const std::vector<size_t> heads = {1, 3};
  const auto cut = [](std::span<const float> values, size_t rows, size_t count, size_t inner,
                      const std::vector<size_t>& kept) {
    std::vector<float> result;
    for (size_t row = 0; row < rows; ++row) {
      for (size_t head : kept) {
        const auto part = values.subspan((row * count + head) * inner, inner);
        result.insert(result.end(), part.begin(), part.end());
      }
    }
    return result;
  };
  const std::vector<float> query = cut(problem.query, 2 * kQueries, 4, 20, heads);
  const std::vector<float> reference = cut(seen.values(Stage::row_reference), 2, 4, kQueries, heads);
  const std::vector<float> sum = cut(seen.values(Stage::row_sum), 2, 4, kQueries, heads);
  attention::AttentionInput input = problem.input();
  input.query = query;
  const RebuiltWeights some(problem.config, input, {reference, sum}, Stage::weights, heads);
  EXPECT_TRUE(same_bits(some.all().as<float>(), cut(seen.values(Stage::weights), 2, 4, kQueries * kKeys, heads)));
  EXPECT_EQ(some.num_heads(), 2U);

  const std::vector<float> key = cut(problem.key, 2 * kKeys, 2, 20, {1});
  input.key = key;
  const std::vector<float> last = cut(problem.query, 2 * kQueries, 4, 20, {3});
  input.query = last;
  const RebuiltWeights one(problem.config, input, {}, Stage::scores, std::vector<size_t>{3});
  EXPECT_TRUE(same_bits(one.all().as<float>(), cut(seen.values(Stage::scores), 2, 4, kQueries * kKeys, {3})));

  EXPECT_EQ(error_text([&] {
              RebuiltWeights(problem.config, input, {}, Stage::scores, std::vector<size_t>{3, 1});
            }),
            "usage: [weights] expected heads below 4 that rise; found 1");
}

}  // namespace
}  // namespace clearhead::tests
