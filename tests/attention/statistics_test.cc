// SPDX-License-Identifier: Apache-2.0
// What the one pass says about its rows, against the same sums over the weights of the exact path in double.
#include "clearhead/attention/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "clearhead/attention/fused.h"
#include "clearhead/base/parallel.h"
#include "statistics_of_weights.h"
#include "tests/support/error_text.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using attention::Precision;
using attention::RowStatistics;

constexpr size_t kQueries = 70, kKeys = 600;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Problem watched() {
  Problem problem(
      {.query_len = kQueries, .key_len = kKeys, .num_heads = 4, .num_kv_heads = 2, .head_dim = 20, .value_dim = 8}, 13,
      3.0f);
  problem.config.causal = Causal::offset;
  problem.config.key_offset = 540;
  return problem;
}

Problem full() {
  Problem problem = watched();
  problem.config.causal = Causal::none;
  return problem;
}

Problem with_windows_and_sinks() {
  Problem problem = full();
  problem.config.left_window = 280;
  problem.config.right_window = 7;
  problem.config.sinks = {1, -3, 30, 200};
  return problem;
}

Problem with_mask_and_cap() {
  Problem problem = full();
  problem.config.soft_cap = 4.0f;
  problem.config.alibi_slopes = {0.5f, 0.25f, 0.125f, 0.0625f};
  std::vector<bool> visible(kQueries * kKeys);
  for (size_t i = 0; i < visible.size(); ++i) visible[i] = hashed_value(5, i) > -0.5f && i / kKeys != 3;
  problem.set_mask(visible, {1, 1, kQueries, kKeys});
  return problem;
}

// Three sequences one behind the other, the first of one token; their queries are many and few.
Problem packed() {
  Problem problem({.query_len = 400, .key_len = 700, .num_heads = 4, .num_kv_heads = 2, .head_dim = 16, .value_dim = 8},
                  17, 3.0f);
  problem.config.causal = Causal::offset;
  problem.sequences = {{.query_begin = 0, .query_len = 1, .key_begin = 0, .key_len = 1},
                       {.query_begin = 1, .query_len = 300, .key_begin = 1, .key_len = 560, .key_offset = 255},
                       {.query_begin = 310, .query_len = 70, .key_begin = 565, .key_len = 130, .key_offset = -2}};
  return problem;
}

// Scores that are often equal.
Problem with_ties() {
  Problem problem({.query_len = 9, .key_len = 1300, .num_heads = 2, .num_kv_heads = 1}, 23);
  for (size_t i = 0; i < problem.query.size(); ++i) problem.query[i] = i % 5 == 0 ? 0.0f : 1.0f;
  for (size_t j = 0; j < problem.key.size(); ++j) problem.key[j] = std::floor(hashed_value(6, j) * 4);
  return problem;
}

// Each key more telling than the one before, so that every key is a candidate.
Problem rising() {
  Problem problem({.query_len = 3, .key_len = 900, .num_heads = 1, .num_kv_heads = 1}, 29);
  std::ranges::fill(problem.query, 1.0f);
  for (size_t j = 0; j < problem.key.size(); ++j) problem.key[j] = static_cast<float>(j) * 0.01f;
  return problem;
}

const std::vector<std::pair<const char*, std::function<Problem()>>> kProblems = {
    {"causal", watched},         {"full", full},     {"windows and sinks", with_windows_and_sinks},
    {"mask", with_mask_and_cap}, {"packed", packed}, {"ties", with_ties},
    {"rising", rising}};

// Everything that can be asked for.
RowStatistics everything(const Problem& problem) {
  RowStatistics asked;
  const size_t sequences = problem.sequences.empty() ? problem.batch : problem.sequences.size();
  std::vector<size_t> third, span;
  for (size_t j = 0; j < problem.key_len; j += 3) third.push_back(j);
  for (size_t j = 250; j < 270; ++j) span.push_back(j);
  std::vector<std::vector<size_t>> own(sequences, {1, 255, 256});
  own.front() = {0};
  std::vector<std::vector<size_t>> own_many(sequences, third);
  own_many.back() = {2, 5, 100, 101, 102, 103};
  asked.groups = {{.keys = {{0, 255, 256, 599}}},
                  {.distance = 0},
                  {.distance = -1},
                  {.distance = 1},
                  {.keys = {third}},
                  {.keys = {span}},
                  {.keys = {{}}},
                  {.keys = own},
                  {.keys = own_many},
                  {.keys = {third}},
                  {.keys = {span}},
                  {.distance = -300}};
  asked.top = 8;
  asked.overview = attention::OverviewBins{7, 13};
  return asked;
}

void expect_row(const StatisticsOfWeights& weights, const RowStatistics& found, size_t sequence, size_t head,
                size_t query) {
  const attention::Sequence& one = weights.sequences()[sequence];
  const size_t row = weights.row(one, head, query);
  const DefinedRow defined = weights.define(sequence, head, query, found);
  const auto p = weights.weights(one, head, query);
  EXPECT_NEAR(found.entropy[row], defined.entropy, 2e-5);
  EXPECT_NEAR(found.mean_distance[row], defined.mean_distance, 2e-6 * (1 + defined.mean_distance));
  const std::vector<size_t>& order = defined.order;
  EXPECT_EQ(found.strongest_key[row], order.empty() ? 0 : order[0]);
  EXPECT_TRUE(same_bits({&found.strongest_weight[row], 1}, std::vector<float>{order.empty() ? 0.0f : p[order[0]]}));
  for (size_t g = 0; g < found.groups.size(); ++g) {
    EXPECT_NEAR(found.group_mass[row * found.groups.size() + g], defined.group_mass[g], 1e-6) << "group " << g;
  }
  for (size_t k = 0; k < found.top; ++k) {
    const bool there = k < order.size();
    ASSERT_EQ(found.top_key[row * found.top + k], there ? static_cast<uint32_t>(order[k]) : kernels::kNoKey) << k;
    EXPECT_TRUE(same_bits({&found.top_weight[row * found.top + k], 1}, std::vector<float>{there ? p[order[k]] : 0}));
  }
}

void expect_overview(const StatisticsOfWeights& weights, const RowStatistics& found, size_t sequence, size_t head,
                     size_t num_heads) {
  const auto& bins = *found.overview;
  for (size_t i = 0; i < bins.queries; ++i) {
    for (size_t j = 0; j < bins.keys; ++j) {
      const auto [sum, maximum] = weights.cell(sequence, head, bins, i, j);
      const size_t at = ((sequence * num_heads + head) * bins.queries + i) * bins.keys + j;
      EXPECT_NEAR(found.overview_sum[at], sum, 1e-6 * (1 + sum)) << i << ", " << j;
      EXPECT_NEAR(found.overview_maximum[at], maximum, 1e-6 * maximum + 1e-12) << i << ", " << j;
    }
  }
}

void expect_statistics_of_weights(const Problem& problem, RowStatistics found) {
  const StatisticsOfWeights weights(problem);
  const auto output = attention::fused_attention(problem.config, problem.input(), &found);
  EXPECT_TRUE(same_bits(all_bits(output), all_bits(problem.run()))) << "statistics changed the output";
  for (size_t sequence = 0; sequence < weights.sequences().size(); ++sequence) {
    for (size_t head = 0; head < problem.config.num_heads; ++head) {
      for (size_t query = 0; query < weights.sequences()[sequence].query_len; ++query) {
        SCOPED_TRACE(testing::Message() << "sequence " << sequence << " head " << head << " query " << query);
        expect_row(weights, found, sequence, head, query);
        if (testing::Test::HasFailure()) return;
      }
      if (found.overview) expect_overview(weights, found, sequence, head, problem.config.num_heads);
    }
  }
}

TEST(RowStatistics, AreThoseOfTheWeightsOnEveryTarget) {
  for_each_target([](const std::string&) {
    for (const auto& [name, make] : kProblems) {
      SCOPED_TRACE(name);
      Problem problem = make();
      for (const Precision precision : {Precision::bfloat16, Precision::single}) {
        problem.config.precision = precision;
        expect_statistics_of_weights(problem, everything(problem));
      }
    }
  });
}

TEST(RowStatistics, NameAsManyKeysAsTheyAreAskedFor) {
  for (const size_t top : {1, 2, 15, 16, 17, 40, 64}) {
    SCOPED_TRACE(top);
    for (const auto& make : {watched, with_mask_and_cap, packed, with_ties, rising}) {
      RowStatistics asked;
      asked.top = top;
      expect_statistics_of_weights(make(), asked);
    }
  }
}

TEST(RowStatistics, CutMapsIntoAnyNumberOfCells) {
  const std::vector<attention::OverviewBins> sizes = {{1, 1}, {70, 600}, {64, 64}, {100, 1000}, {3, 256}, {2, 17}};
  for (const attention::OverviewBins& bins : sizes) {
    SCOPED_TRACE(testing::Message() << bins.queries << " x " << bins.keys);
    for (const auto& make : {watched, packed}) {
      RowStatistics asked;
      asked.overview = bins;
      expect_statistics_of_weights(make(), asked);
    }
  }
}

TEST(RowStatistics, EachMayBeAskedForAlone) {
  const Problem problem = with_windows_and_sinks();
  const RowStatistics all = everything(problem);
  RowStatistics groups, top, overview;
  groups.groups = all.groups;
  top.top = all.top;
  overview.overview = all.overview;
  for (const RowStatistics& asked : {RowStatistics(), groups, top, overview}) {
    expect_statistics_of_weights(problem, asked);
  }
}

TEST(RowStatistics, HaveTheSameBitsOnEveryTargetAndForAnyNumberOfThreads) {
  for (const auto& [name, make] : kProblems) {
    SCOPED_TRACE(name);
    const Problem problem = make();
    std::vector<float> first;
    for_each_target([&](const std::string& target) {
      if (!has_fused_multiply_add(target)) return;
      for (size_t threads : {1, 2, 3, 5}) {
        base::set_num_threads(threads);
        RowStatistics found = everything(problem);
        attention::fused_attention(problem.config, problem.input(), &found);
        if (first.empty()) first = bits_of(found);
        EXPECT_TRUE(same_bits(bits_of(found), first)) << threads << " threads";
      }
      base::set_num_threads(base::available_threads());
    });
    EXPECT_FALSE(first.empty()) << "no target with fused multiply-add ran";
  }
}

// A packed sequence says what it says alone, wherever it stands.
TEST(RowStatistics, DoNotDependOnCompanions) {
  const Problem together = packed();
  RowStatistics found = everything(together);
  attention::fused_attention(together.config, together.input(), &found);
  const attention::Sequence& one = together.sequences[2];
  Problem alone = together.copy();
  const auto part = [](const std::vector<float>& all, size_t begin, size_t len, size_t width) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin * width);
    return std::vector<float>(first, first + static_cast<std::ptrdiff_t>(len * width));
  };
  alone.sequences.clear();
  alone.config.key_offset = one.key_offset;
  alone.query_len = one.query_len;
  alone.key_len = one.key_len;
  alone.query = part(together.query, one.query_begin, one.query_len, 4 * 16);
  alone.key = part(together.key, one.key_begin, one.key_len, 2 * 16);
  alone.value = part(together.value, one.key_begin, one.key_len, 2 * 8);
  RowStatistics own = everything(together);
  for (attention::KeyGroup& group : own.groups) {
    if (group.keys.size() > 1) group.keys = {group.keys[2]};
  }
  attention::fused_attention(alone.config, alone.input(), &own);
  for (size_t head = 0; head < 4; ++head) {
    const auto same = [&](const std::vector<float>& all, const std::vector<float>& few, size_t width) {
      return same_bits(std::span(all).subspan((head * 400 + one.query_begin) * width, one.query_len * width),
                       std::span(few).subspan(head * one.query_len * width, one.query_len * width));
    };
    EXPECT_TRUE(same(found.entropy, own.entropy, 1));
    EXPECT_TRUE(same(found.top_weight, own.top_weight, 8));
    EXPECT_TRUE(same(found.group_mass, own.group_mass, own.groups.size()));
  }
  const size_t cells = 4 * 7 * 13;
  EXPECT_TRUE(std::ranges::equal(std::span(found.overview_sum).subspan(2 * cells, cells), own.overview_sum));
  EXPECT_TRUE(std::ranges::equal(std::span(found.overview_maximum).subspan(2 * cells, cells), own.overview_maximum));
}

TEST(RowStatistics, AreZeroWhereNothingIsSeenAndNaNWhereTheRowIs) {
  for (const float bad : {kNaN, std::numeric_limits<float>::infinity()}) {
    Problem problem = watched();
    problem.config.key_offset = -1;  // the first query sees nothing
    problem.query[2 * 4 * 20] = bad;
    RowStatistics found = everything(problem);
    found.overview->queries = kQueries;
    attention::fused_attention(problem.config, problem.input(), &found);
    EXPECT_EQ(found.entropy[0], 0.0f);
    EXPECT_EQ(found.strongest_weight[0], 0.0f);
    EXPECT_EQ(found.strongest_weight[1], 1.0f);
    EXPECT_EQ(found.entropy[1], 0.0f);
    EXPECT_TRUE(std::isnan(found.entropy[2]));
    EXPECT_EQ(found.strongest_key[2], 0u);
    EXPECT_FALSE(std::isnan(found.entropy[3]));
    const size_t groups = found.groups.size();
    for (size_t g = 0; g < groups; ++g) {
      EXPECT_EQ(found.group_mass[g], 0.0f);
      EXPECT_TRUE(std::isnan(found.group_mass[2 * groups + g])) << g;
      EXPECT_FALSE(std::isnan(found.group_mass[3 * groups + g]));
    }
    for (size_t k = 0; k < 8; ++k) {
      EXPECT_EQ(found.top_key[k], kernels::kNoKey);
      EXPECT_EQ(found.top_weight[k], 0.0f);
      EXPECT_EQ(found.top_key[2 * 8 + k], kernels::kNoKey);
      EXPECT_TRUE(std::isnan(found.top_weight[2 * 8 + k]));
      EXPECT_EQ(found.top_weight[3 * 8 + k] > 0, k < 3);
    }
    for (size_t j = 0; j < 13; ++j) {
      EXPECT_EQ(found.overview_sum[j], 0.0);
      EXPECT_TRUE(std::isnan(found.overview_sum[2 * 13 + j]));
      EXPECT_TRUE(std::isnan(found.overview_maximum[2 * 13 + j]));
      EXPECT_FALSE(std::isnan(found.overview_sum[3 * 13 + j]));
    }
  }
}

TEST(RowStatistics, OfEqualScoresNameTheLowestKey) {
  Problem problem({.query_len = 1, .key_len = 300});
  problem.query = {0};
  RowStatistics found;
  found.top = 3;
  attention::fused_attention(problem.config, problem.input(), &found);
  EXPECT_EQ(found.strongest_key[0], 0u);
  EXPECT_EQ(found.top_key, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_NEAR(found.entropy[0], std::log(300.0), 1e-5);
  EXPECT_NEAR(found.mean_distance[0], 149.5, 1e-3);
}

TEST(RowStatistics, RefuseWhatCannotBeAskedFor) {
  const Problem problem = watched();
  const auto refused = [&](RowStatistics asked) {
    return error_text([&] { attention::fused_attention(problem.config, problem.input(), &asked); });
  };
  EXPECT_EQ(refused({.top = 65}), "usage: [attention statistics] expected at most 64 strongest keys; found 65");
  EXPECT_EQ(refused({.overview = attention::OverviewBins{0, 3}}),
            "usage: [attention statistics] expected a map of at least 1 x 1 cells; found 0 x 3");
  EXPECT_EQ(refused({.overview = attention::OverviewBins{size_t{1} << 40, size_t{1} << 40}}),
            "usage: [attention statistics] expected maps that fit in memory; found "
            "[1, 4, 1099511627776, 1099511627776, 8]");
  EXPECT_EQ(refused({.groups = {{}}}),
            "usage: [attention statistics] expected a group of keys to have either lists of keys or a distance; found "
            "neither");
  EXPECT_EQ(refused({.groups = {{.keys = {{1}}, .distance = 0}}}),
            "usage: [attention statistics] expected a group of keys to have either lists of keys or a distance; found "
            "both");
  EXPECT_EQ(refused({.groups = {{.keys = {{1}, {2}}}}}),
            "usage: [attention statistics] expected a group of keys to have one list, or one for each of 1 sequences; "
            "found 2");
  EXPECT_EQ(refused({.groups = {{.keys = {{1, 1}}}}}),
            "usage: [attention statistics] expected the keys of a group in rising order; found others");
}

}  // namespace
}  // namespace clearhead::tests
