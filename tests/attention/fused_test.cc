// SPDX-License-Identifier: Apache-2.0
// The one-pass kernel against its definition, exact_attention, bit for bit.
#include "clearhead/attention/fused.h"

#include <gtest/gtest.h>

#include <limits>

#include "clearhead/base/parallel.h"
#include "problem.h"
#include "tests/support/error_text.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using attention::Precision;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Restores the number of threads.
struct Threads {
  ~Threads() { base::set_num_threads(before); }
  size_t before = base::num_threads();
};

void expect_same(const attention::AttentionOutput& found, const attention::AttentionOutput& want) {
  EXPECT_TRUE(same_bits(floats(found.head_output), floats(want.head_output)));
  EXPECT_TRUE(same_bits(floats(found.row_reference), floats(want.row_reference)));
  EXPECT_TRUE(same_bits(floats(found.row_sum), floats(want.row_sum)));
}

// In both precisions, by one and several threads, because they cut the work differently.
void expect_bits_of_exact(Problem& problem) {
  const Threads restore;
  for (Precision precision : {Precision::bfloat16, Precision::single}) {
    problem.config.precision = precision;
    const auto want = problem.run();
    for (size_t threads : {1, 2, 3, 5}) {
      SCOPED_TRACE(testing::Message() << threads << " threads" << (precision == Precision::single ? "" : ", bfloat16"));
      base::set_num_threads(threads);
      expect_same(attention::fused_attention(problem.config, problem.input()), want);
    }
  }
}
void expect_bits_of_exact(Problem&& problem) { expect_bits_of_exact(problem); }

Problem grouped(size_t query_len = 70, size_t key_len = 530) {
  return Problem({.batch = 2,
                  .query_len = query_len,
                  .key_len = key_len,
                  .num_heads = 6,
                  .num_kv_heads = 3,
                  .head_dim = 24,
                  .value_dim = 20},
                 7, 3.0f);
}

TEST(FusedAttention, HasTheBitsOfExactForEveryLengthOnEveryTarget) {
  for_each_target([](const std::string&) {
    for (size_t key_len : {0, 1, 15, 16, 17, 255, 256, 257, 511, 512, 513}) {
      for (size_t query_len : {1, 7, 13, 65}) {
        SCOPED_TRACE(testing::Message() << query_len << " x " << key_len);
        expect_bits_of_exact(Problem({.query_len = query_len, .key_len = key_len, .head_dim = 24, .value_dim = 17}));
      }
    }
  });
}

TEST(FusedAttention, HasTheBitsOfExactForEveryHeadSizeOnEveryTarget) {
  for_each_target([](const std::string&) {
    for (size_t dim : {1, 3, 7, 8, 9, 16, 32, 40, 63, 64, 65, 72, 80, 96, 100, 128, 160, 192, 256}) {
      SCOPED_TRACE(dim);
      expect_bits_of_exact(Problem(
          {.query_len = 14, .key_len = 270, .num_heads = 2, .num_kv_heads = 1, .head_dim = dim, .value_dim = dim}));
    }
  });
}

TEST(FusedAttention, HasTheBitsOfExactForEveryBehaviourOnEveryTarget) {
  for_each_target([](const std::string&) {
    for (size_t query_len : {2, 70}) {
      for (int behaviour = 0; behaviour < 10; ++behaviour) {
        SCOPED_TRACE(testing::Message() << query_len << " queries, behaviour " << behaviour);
        Problem problem = grouped(query_len);
        auto& config = problem.config;
        switch (behaviour) {
          case 0: break;
          case 1: config.causal = Causal::top_left; break;
          case 2: config.causal = Causal::offset, config.key_offset = 458; break;
          case 3: config.causal = Causal::offset, config.key_offset = -3; break;
          case 4: config.key_offset = 200, config.left_window = 100, config.right_window = 130; break;
          case 5: config.causal = Causal::offset, config.key_offset = 460, config.left_window = 3; break;
          case 6: config.soft_cap = 5.0f, config.causal = Causal::top_left; break;
          case 7: config.alibi_slopes = {.5f, .25f, .125f, .0625f, .03125f, .01f}; break;
          case 8: config.sinks = {1, -2, 30, -kInfinity, 0, 5}, config.causal = Causal::top_left; break;
          default:
            config.soft_cap = 8.0f, config.left_window = 300, config.key_offset = 400;
            config.alibi_slopes = {.5f, .25f, .125f, .0625f, .03125f, .01f}, config.sinks = {1, 2, 3, 4, 5, 6};
        }
        expect_bits_of_exact(problem);
      }
    }
  });
}

TEST(FusedAttention, HasTheBitsOfExactForMasksOnEveryTarget) {
  for_each_target([](const std::string&) {
    for (Causal causal : {Causal::none, Causal::top_left}) {
      Problem problem = grouped();
      problem.config.causal = causal;
      std::vector<bool> visible(70 * 530);
      for (size_t i = 0; i < visible.size(); ++i) visible[i] = i % 7 < 3 && !(i % 530 >= 256 && i % 530 < 512);
      std::fill_n(visible.begin() + 530 * 5, 530, false);  // a row that sees nothing
      problem.set_mask(visible, {1, 1, 70, 530});
      expect_bits_of_exact(problem);
      std::vector<float> bias = hashed_values(5, 2 * 6 * 530, 4.0f);
      for (size_t i = 0; i < bias.size(); i += 11) bias[i] = i % 2 == 0 ? -kInfinity : -1e30f;
      problem.set_mask(bias, {2, 6, 1, 530});
      expect_bits_of_exact(problem);
    }
  });
}

TEST(FusedAttention, HasTheBitsOfExactForSequencesOfUnequalLengths) {
  Problem problem = grouped(150, 700);
  problem.config.causal = Causal::offset;
  problem.sequences = {
      {0, 0, 40, 0, 40, 0}, {0, 40, 100, 40, 400, 300}, {0, 140, 5, 440, 0, 0}, {1, 3, 147, 10, 690, 0}};
  expect_bits_of_exact(problem);
  std::vector<bool> visible(700, true);
  for (size_t j = 0; j < 700; j += 3) visible[j] = false;
  problem.set_mask(visible, {1, 1, 1, 700});
  expect_bits_of_exact(problem);
}

TEST(FusedAttention, LetsPoisonBehindAMaskAndBehindTheDiagonalTouchNothing) {
  for_each_target([](const std::string&) {
    for (float poison : {kNaN, kInfinity, -kInfinity, 1e30f}) {
      SCOPED_TRACE(poison);
      Problem clean = grouped();
      clean.config.causal = Causal::top_left;
      std::vector<bool> visible(530, true);
      for (size_t j = 2; j < 530; j += 5) visible[j] = false;
      Problem poisoned = clean.copy();
      for (size_t j = 0; j < 530; ++j) {
        if (visible[j] && j < 70) continue;
        for (size_t b = 0; b < 2; ++b) {
          std::fill_n(poisoned.key.begin() + static_cast<std::ptrdiff_t>((b * 530 + j) * 3 * 24), 3 * 24, poison);
          std::fill_n(poisoned.value.begin() + static_cast<std::ptrdiff_t>((b * 530 + j) * 3 * 20), 3 * 20, poison);
        }
      }
      clean.set_mask(visible, {1, 1, 1, 530});
      poisoned.set_mask(visible, {1, 1, 1, 530});
      for (Precision precision : {Precision::single, Precision::bfloat16}) {
        clean.config.precision = poisoned.config.precision = precision;
        expect_same(attention::fused_attention(poisoned.config, poisoned.input()),
                    attention::fused_attention(clean.config, clean.input()));
      }
    }
  });
}

TEST(FusedAttention, HasTheBitsOfExactWhereNumbersAreNotFinite) {
  for_each_target([](const std::string&) {
    for (float odd : {kNaN, kInfinity, -kInfinity, -kNaN}) {
      Problem problem = grouped();
      problem.config.causal = Causal::offset;
      problem.config.key_offset = 450;
      problem.query[33 * 6 * 24 + 5] = odd;
      problem.key[300 * 3 * 24 + 30] = odd;
      problem.value[460 * 3 * 20 + 3] = odd;
      problem.value[8] = odd;
      expect_bits_of_exact(problem);
    }
  });
}

TEST(FusedAttention, RunsAgainInTheSameWorkspaceWhateverItsSizes) {
  attention::FusedAttention fused;
  for (size_t key_len : {530, 3, 700, 0, 257}) {
    for (size_t query_len : {70, 1, 130}) {
      Problem problem = grouped(query_len, key_len);
      problem.config.causal = Causal::top_left;
      problem.config.precision = query_len == 70 ? Precision::bfloat16 : Precision::single;
      const auto want = problem.run();
      std::vector<float> output(want.head_output.elements(), kNaN), reference(want.row_sum.elements(), kNaN);
      std::vector<float> sum = reference;
      fused.run(problem.config, problem.input(), {output, reference, sum});
      EXPECT_TRUE(same_bits(output, floats(want.head_output)));
      EXPECT_TRUE(same_bits(reference, floats(want.row_reference)));
      EXPECT_TRUE(same_bits(sum, floats(want.row_sum)));
    }
  }
}

TEST(FusedAttention, RefusesSpansThatDoNotFitTheirShapes) {
  Problem problem({.query_len = 2, .key_len = 3, .head_dim = 4});
  std::vector<float> output(2), rows(2), short_rows(1);
  attention::FusedAttention fused;
  EXPECT_EQ(error_text([&] {
              fused.run(problem.config, problem.input(), {rows, short_rows, rows});
            }),
            "usage: [attention] expected row_reference of shape [1, 1, 2]; found 1 elements");
  problem.key.pop_back();
  EXPECT_EQ(error_text([&] { attention::fused_attention(problem.config, problem.input()); }),
            "usage: [attention] expected key of shape [1, 3, 1, 4]; found 11 elements");
}

}  // namespace
}  // namespace clearhead::tests
