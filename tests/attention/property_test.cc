// SPDX-License-Identifier: Apache-2.0
// Laws that hold for any sizes, rules and numbers.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <numeric>

#include "clearhead/attention/fused.h"
#include "clearhead/attention/received.h"
#include "clearhead/attention/weights.h"
#include "statistics_of_weights.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using attention::RowStatistics;
using capture::Stage;

// Whatever the size that the library grows: small cases come of themselves.
size_t below(size_t count) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<size_t>(0, count)); }
bool one_in(size_t count) { return below(count) == 0; }

// Any problem of a few heads, with any of the rules.
Problem any_problem() {
  constexpr size_t kFactors[] = {1, 4, 30};
  const size_t kv_heads = 1 + below(2);
  const ProblemSizes sizes{.batch = 1 + below(2),
                           .query_len = 1 + below(one_in(4) ? 150 : 20),
                           .key_len = 1 + below(one_in(2) ? 600 : 20),
                           .num_heads = kv_heads * (1 + below(3)),
                           .num_kv_heads = kv_heads,
                           .head_dim = 1 + below(20),
                           .value_dim = 1 + below(20)};
  Problem problem(sizes, 100 + below(1000), static_cast<float>(kFactors[below(3)]));
  attention::AttentionConfig& config = problem.config;
  config.causal = std::array{Causal::none, Causal::top_left, Causal::offset}[below(3)];
  config.key_offset = static_cast<int64_t>(below(sizes.key_len + 10)) - 5;
  if (one_in(3)) config.left_window = below(300);
  if (one_in(3)) config.right_window = below(30);
  if (one_in(3)) config.soft_cap = 1.0f + static_cast<float>(below(20));
  if (one_in(3)) config.alibi_slopes.assign(sizes.num_heads, 0.25f);
  if (one_in(3)) config.sinks.assign(sizes.num_heads, static_cast<float>(below(20)) - 10.0f);
  if (one_in(3)) {
    std::vector<bool> visible(sizes.query_len * sizes.key_len);
    const uint64_t seed = below(1000);
    for (size_t i = 0; i < visible.size(); ++i) visible[i] = hashed_value(seed, i) > 0;
    problem.set_mask(visible, {1, 1, sizes.query_len, sizes.key_len});
  }
  if (one_in(3)) {  // the first row of the batch: two sequences, what is left of it in none
    const size_t queries = below(sizes.query_len + 1), keys = below(sizes.key_len + 1);
    problem.sequences = {{.query_len = queries, .key_len = keys, .key_offset = static_cast<int64_t>(below(9))},
                         {.query_begin = queries,
                          .query_len = sizes.query_len - queries,
                          .key_begin = keys,
                          .key_len = sizes.key_len - keys,
                          .key_offset = -static_cast<int64_t>(below(9))}};
  }
  return problem;
}

TEST(Properties, RowsSumToOneOrAreZeroAndOnePassSaysTheSame) {
  EXPECT_TRUE(rc::check([] {
    const Problem problem = any_problem();
    Everything seen;
    const auto exact = problem.run(&seen);
    RowStatistics found;
    found.top = 1 + below(20);
    RC_ASSERT(
        same_bits(all_bits(attention::fused_attention(problem.config, problem.input(), &found)), all_bits(exact)));
    RC_ASSERT(same_bits(all_bits(attention::fused_attention(problem.config, problem.input())), all_bits(exact)));
    const auto weights = seen.values(Stage::weights);
    for (size_t row = 0; row < found.entropy.size(); ++row) {
      const auto p = weights.subspan(row * problem.key_len, problem.key_len);
      const double sum = std::accumulate(p.begin(), p.end(), 0.0);
      const float reference = exact.row_reference.as<float>()[row], total = exact.row_sum.as<float>()[row];
      double sink = 0;
      if (!problem.config.sinks.empty() && total > 0) {
        const size_t head = row / problem.query_len % problem.config.num_heads;
        sink = std::exp2(double{problem.config.sinks[head]} * std::log2(std::exp(1.0)) - double{reference}) / total;
      }
      if (total == 0) {
        RC_ASSERT(sum == 0 && found.entropy[row] == 0 && found.top_weight[row * found.top] == 0);
      } else {
        RC_ASSERT(std::abs(sum + sink - 1) <= 1e-6);
      }
    }
  }));
}

TEST(Properties, StatisticsAreThoseOfRebuiltWeights) {
  EXPECT_TRUE(rc::check([] {
    const Problem problem = any_problem();
    RowStatistics found;
    found.top = 1 + below(64);
    found.overview = attention::OverviewBins{1 + below(9), 1 + below(40)};
    const std::vector<size_t> group = {0, 1, 2, 7, 17, 90, 255, 256};
    found.groups = {{.keys = {group}}, {.distance = static_cast<int64_t>(below(7)) - 3}};
    attention::fused_attention(problem.config, problem.input(), &found);
    const StatisticsOfWeights weights(problem);
    for (size_t sequence = 0; sequence < weights.sequences().size(); ++sequence) {
      const attention::Sequence& one = weights.sequences()[sequence];
      for (size_t head = 0; head < problem.config.num_heads; ++head) {
        double whole = 0, pooled = 0;
        for (size_t query = 0; query < one.query_len; ++query) {
          const size_t row = weights.row(one, head, query);
          const DefinedRow defined = weights.define(sequence, head, query, found);
          whole += defined.sum;
          RC_ASSERT(std::abs(found.entropy[row] - defined.entropy) <= 3e-5);
          for (size_t g = 0; g < 2; ++g) {
            RC_ASSERT(std::abs(found.group_mass[row * 2 + g] - defined.group_mass[g]) <= 2e-6);
          }
          for (size_t k = 0; k < found.top; ++k) {
            const bool there = k < defined.order.size();
            RC_ASSERT(found.top_key[row * found.top + k] ==
                      (there ? static_cast<uint32_t>(defined.order[k]) : kernels::kNoKey));
            RC_ASSERT(found.top_weight[row * found.top + k] ==
                      (there ? weights.weights(one, head, query)[defined.order[k]] : 0.0f));
          }
        }
        const size_t cells = found.overview->queries * found.overview->keys;
        const auto map =
            std::span(found.overview_sum).subspan((sequence * problem.config.num_heads + head) * cells, cells);
        pooled = std::accumulate(map.begin(), map.end(), 0.0);
        RC_ASSERT(std::abs(whole - pooled) <= 1e-6 * (1 + whole));
      }
    }
  }));
}

TEST(Properties, PermutingKeysPermutesWhatTheySay) {
  EXPECT_TRUE(rc::check([] {
    const size_t key_len = 1 + below(500), dim = 1 + below(20);
    const Problem problem({.query_len = 7, .key_len = key_len, .head_dim = dim, .value_dim = dim}, below(1000));
    Problem permuted = problem.copy();
    std::vector<size_t> place(key_len);
    std::iota(place.begin(), place.end(), size_t{0});
    for (size_t j = key_len; j > 1; --j) std::swap(place[j - 1], place[below(j)]);
    for (size_t j = 0; j < key_len; ++j) {
      const auto from = static_cast<std::ptrdiff_t>(j * dim), to = static_cast<std::ptrdiff_t>(place[j] * dim);
      std::copy_n(problem.key.begin() + from, dim, permuted.key.begin() + to);
      std::copy_n(problem.value.begin() + from, dim, permuted.value.begin() + to);
    }
    RowStatistics found, other;
    found.top = other.top = 2 + below(20);
    const auto output = attention::fused_attention(problem.config, problem.input(), &found);
    const auto moved = attention::fused_attention(permuted.config, permuted.input(), &other);
    std::vector<float> received(key_len), received_moved(key_len);
    attention::attention_received(problem.config, problem.input(), output.row_reference.as<float>(),
                                  output.row_sum.as<float>(), received);
    attention::attention_received(permuted.config, permuted.input(), moved.row_reference.as<float>(),
                                  moved.row_sum.as<float>(), received_moved);
    for (size_t row = 0; row < 7; ++row) {
      RC_ASSERT(std::abs(found.entropy[row] - other.entropy[row]) <= 2e-5f);
      for (size_t k = 0; k < found.top; ++k) {
        const size_t at = row * found.top + k;
        RC_ASSERT(std::abs(found.top_weight[at] - other.top_weight[at]) <= 1e-6f);
      }
      const size_t at = row * found.top;
      if (key_len > 1 && found.top_weight[at] - found.top_weight[at + 1] < 1e-6f) continue;
      RC_ASSERT(other.top_key[at] == place[found.top_key[at]]);
    }
    for (size_t j = 0; j < key_len; ++j) {
      RC_ASSERT(std::abs(received[j] - received_moved[place[j]]) <= 1e-5f);
    }
  }));
}

}  // namespace
}  // namespace clearhead::tests
