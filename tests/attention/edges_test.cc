// SPDX-License-Identifier: Apache-2.0
// What stands around the numbers of a problem, and how they are aligned, touches no bit: poison before and behind every
// input, behind masks, lengths, windows and tails; results go to any place and nowhere else.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "clearhead/attention/fused.h"
#include "clearhead/base/parallel.h"
#include "problem.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using attention::Precision;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr size_t kGuard = 80;  // elements on both sides, more than any register and panel holds

// Numbers at any alignment, poison on both sides.
template <class Element>
class Guarded {
 public:
  Guarded(std::span<const Element> values, size_t misaligned, Element poison)
      : begin_(kGuard + misaligned), count_(values.size()), all_(begin_ + values.size() + kGuard, poison) {
    std::ranges::copy(values, all_.begin() + static_cast<std::ptrdiff_t>(begin_));
  }

  std::span<Element> values() { return std::span(all_).subspan(begin_, count_); }
  bool guards_are(Element poison) const {
    const auto same = [&](Element e) { return std::memcmp(&e, &poison, sizeof(Element)) == 0; };
    return std::all_of(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(begin_), same) &&
           std::all_of(all_.end() - kGuard, all_.end(), same);
  }

 private:
  size_t begin_, count_;
  std::vector<Element> all_;
};

Problem odd_problem(size_t query_len, size_t key_len) {
  return Problem({.batch = 2,
                  .query_len = query_len,
                  .key_len = key_len,
                  .num_heads = 4,
                  .num_kv_heads = 2,
                  .head_dim = 13,
                  .value_dim = 21},
                 17, 3.0f);
}

// The rules under which poison could become a number: a soft cap makes 1 of what is far too large.
void set_rules(attention::AttentionConfig& config, int rules, size_t key_len) {
  if (rules == 1) config.soft_cap = 50.0f;
  if (rules == 2) {
    config.soft_cap = 5.0f, config.alibi_slopes = {.5f, .25f, .125f, .0625f}, config.sinks = {1, -2, 3, 0};
    config.causal = Causal::offset, config.key_offset = static_cast<int64_t>(key_len) - 3, config.left_window = 40;
  }
}

// Runs with all inputs and outputs guarded, each at another alignment. Returns output, references and sums.
std::vector<float> run_guarded(const Problem& problem, size_t misaligned, float poison) {
  Guarded<float> query(problem.query, misaligned, poison), key(problem.key, (misaligned * 3 + 1) % 16, poison);
  Guarded<float> value(problem.value, (misaligned * 5 + 2) % 16, poison);
  const size_t rows = problem.batch * problem.config.num_heads * problem.query_len;
  const std::vector<float> nothing(rows * problem.config.value_dim, kNaN);
  Guarded<float> output(nothing, (misaligned * 7 + 3) % 16, poison);
  Guarded<float> reference(std::span<const float>(nothing).first(rows), misaligned, poison);
  Guarded<float> sum(std::span<const float>(nothing).first(rows), (misaligned + 9) % 16, poison);
  attention::AttentionInput input = problem.input();
  input.query = query.values(), input.key = key.values(), input.value = value.values();
  attention::FusedAttention fused;
  fused.run(problem.config, input, {output.values(), reference.values(), sum.values()});
  for (const Guarded<float>* one : {&query, &key, &value, &output, &reference, &sum}) {
    EXPECT_TRUE(one->guards_are(poison));
  }
  std::vector<float> all(output.values().begin(), output.values().end());
  all.insert(all.end(), reference.values().begin(), reference.values().end());
  all.insert(all.end(), sum.values().begin(), sum.values().end());
  return all;
}

// Calls work for both precisions and for thread counts that cut a run by kv heads, by queries and by keys.
void for_each_way(Problem& problem, const std::function<void()>& work) {
  const size_t before = base::num_threads();
  for (const Precision precision : {Precision::single, Precision::bfloat16}) {
    problem.config.precision = precision;
    for (const size_t threads : {1, 3}) {
      SCOPED_TRACE(testing::Message() << threads << " threads, precision " << static_cast<int>(precision));
      base::set_num_threads(threads);
      work();
    }
  }
  base::set_num_threads(before);
}

TEST(Edges, AlignmentAndPoisonAroundInputsTouchNothingOnEveryTarget) {
  for_each_target([](const std::string&) {
    for (const size_t key_len : {1, 17, 255, 257}) {
      for (const size_t query_len : {1, 15}) {
        for (const int rules : {0, 1, 2}) {
          Problem problem = odd_problem(query_len, key_len);
          set_rules(problem.config, rules, key_len);
          SCOPED_TRACE(testing::Message() << query_len << " x " << key_len << ", rules " << rules);
          for_each_way(problem, [&] {
            const auto want = all_bits(attention::fused_attention(problem.config, problem.input()));
            for (const float poison : {kNaN, 1e30f}) {
              for (const size_t misaligned : {1, 6, 15}) {
                EXPECT_TRUE(same_bits(run_guarded(problem, misaligned, poison), want)) << misaligned << " " << poison;
              }
            }
          });
        }
      }
    }
  });
}

TEST(Edges, EveryAlignmentOfEveryTypeGivesTheSameBits) {
  for_each_target([](const std::string&) {
    const Problem problem = odd_problem(5, 70);
    const auto want = all_bits(attention::fused_attention(problem.config, problem.input()));
    for (size_t misaligned = 0; misaligned < 16; ++misaligned) {
      EXPECT_TRUE(same_bits(run_guarded(problem, misaligned, kNaN), want)) << misaligned;
    }
    std::vector<tensor::Half> query, key, value;
    const auto halves = [](const std::vector<float>& from, std::vector<tensor::Half>& to) {
      std::ranges::transform(from, std::back_inserter(to), [](float x) { return tensor::to_half(x); });
    };
    halves(problem.query, query), halves(problem.key, key), halves(problem.value, value);
    const auto run = [&](size_t misaligned) {
      const tensor::Half poison = tensor::to_half(kNaN);
      Guarded<tensor::Half> q(query, misaligned, poison), k(key, misaligned + 1, poison), v(value, misaligned, poison);
      attention::AttentionInput input = problem.input();
      const auto of = [](Guarded<tensor::Half>& one) { return std::span<const tensor::Half>(one.values()); };
      input.query = of(q), input.key = of(k), input.value = of(v);
      return all_bits(attention::fused_attention(problem.config, input));
    };
    const auto first = run(0);
    for (size_t misaligned = 1; misaligned < 32; misaligned += 3) EXPECT_TRUE(same_bits(run(misaligned), first));
  });
}

// What hides a key: a mask of any kind, the end of a sequence, the causal rule, a window.
enum class Hidden { by_boolean, by_infinity, by_lowest, by_length, by_diagonal, by_left_window, by_right_window };
constexpr Hidden kWays[] = {Hidden::by_boolean,  Hidden::by_infinity,    Hidden::by_lowest,      Hidden::by_length,
                            Hidden::by_diagonal, Hidden::by_left_window, Hidden::by_right_window};

constexpr size_t kQueries = 9, kKeys = 300, kTail = 43;  // the tail ends inside a panel of the second tile

// Hides keys that no query sees then, and says which.
std::vector<bool> hide(Problem& problem, Hidden way) {
  std::vector<bool> hidden(kKeys, false);
  const auto from = [&](size_t first) {
    std::fill(hidden.begin() + static_cast<std::ptrdiff_t>(first), hidden.end(), true);
  };
  const auto every_fourth = [&] {
    for (size_t j = 0; j < kKeys; ++j) hidden[j] = j % 4 == 1 || (j >= 30 && j < 70) || j >= kKeys - kTail;
  };
  const auto mask = [&](float forbidden) {
    every_fourth();
    std::vector<float> bias = hashed_values(3, kKeys, 2.0f);
    for (size_t j = 0; j < kKeys; ++j) bias[j] = hidden[j] ? forbidden : bias[j];
    problem.set_mask(bias, {1, 1, 1, kKeys});
  };
  switch (way) {
    case Hidden::by_boolean: {
      every_fourth();
      std::vector<bool> visible = hidden;
      visible.flip();
      problem.set_mask(visible, {1, 1, 1, kKeys});
      break;
    }
    case Hidden::by_infinity: mask(-kInfinity); break;
    case Hidden::by_lowest: mask(kLowest); break;
    case Hidden::by_length:
      for (size_t b = 0; b < 2; ++b) problem.sequences.push_back({b, 0, kQueries, 0, kKeys - kTail, 0});
      from(kKeys - kTail);
      break;
    case Hidden::by_diagonal:
      problem.config.causal = Causal::offset, problem.config.key_offset = kKeys - kTail - kQueries;
      from(kKeys - kTail);
      break;
    case Hidden::by_right_window:
      problem.config.key_offset = kKeys - kTail - kQueries - 3, problem.config.right_window = 3;
      from(kKeys - kTail);
      break;
    case Hidden::by_left_window:
      problem.config.key_offset = 270, problem.config.left_window = 9;
      std::fill_n(hidden.begin(), 261, true);
      break;
  }
  return hidden;
}

void poison_hidden(Problem& problem, const std::vector<bool>& hidden, float poison) {
  const size_t key_width = problem.config.num_kv_heads * problem.config.head_dim;
  const size_t value_width = problem.config.num_kv_heads * problem.config.value_dim;
  for (size_t row = 0; row < problem.batch * kKeys; ++row) {
    if (!hidden[row % kKeys]) continue;
    std::fill_n(problem.key.begin() + static_cast<std::ptrdiff_t>(row * key_width), key_width, poison);
    std::fill_n(problem.value.begin() + static_cast<std::ptrdiff_t>(row * value_width), value_width, poison);
  }
}

TEST(Edges, PoisonBehindEverythingThatHidesKeysTouchesNothingOnEveryTarget) {
  for_each_target([](const std::string&) {
    for (const Hidden way : kWays) {
      for (const std::optional<float> soft_cap : {std::optional<float>(), std::optional(50.0f)}) {
        for (const float poison : {kNaN, 1e30f, -kInfinity, kInfinity}) {
          SCOPED_TRACE(testing::Message() << "way " << static_cast<int>(way) << ", poison " << poison << ", soft cap "
                                          << soft_cap.value_or(0));
          Problem problem = odd_problem(kQueries, kKeys);
          problem.config.soft_cap = soft_cap;
          const std::vector<bool> hidden = hide(problem, way);
          Problem poisoned = problem.copy();
          poison_hidden(poisoned, hidden, poison);
          poisoned.mask = problem.mask;
          for_each_way(problem, [&] {
            poisoned.config.precision = problem.config.precision;
            const auto want = all_bits(attention::fused_attention(problem.config, problem.input()));
            EXPECT_TRUE(same_bits(all_bits(attention::fused_attention(poisoned.config, poisoned.input())), want));
            EXPECT_TRUE(same_bits(run_guarded(poisoned, 5, poison), want));
            EXPECT_TRUE(std::ranges::none_of(want, [](float x) { return std::isnan(x); }));
          });
        }
      }
    }
  });
}

}  // namespace
}  // namespace clearhead::tests
