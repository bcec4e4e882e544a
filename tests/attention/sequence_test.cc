// SPDX-License-Identifier: Apache-2.0
// Sequences of unequal lengths: packed, padded on either side, in any order.
#include "clearhead/attention/sequence.h"

#include <gtest/gtest.h>

#include <limits>

#include "problem.h"
#include "tests/support/error_text.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using attention::Sequence;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The queries and keys of one sequence of a problem, as a problem of its own.
Problem alone(const Problem& all, const Sequence& one) {
  const auto& config = all.config;
  Problem part(ProblemSizes{});
  part.config = config;
  part.config.key_offset = one.key_offset;
  part.query_len = one.query_len;
  part.key_len = one.key_len;
  const auto cut = [](const std::vector<float>& values, size_t first, size_t count, size_t width) {
    const auto start = values.begin() + static_cast<std::ptrdiff_t>(first * width);
    return std::vector<float>(start, start + static_cast<std::ptrdiff_t>(count * width));
  };
  const size_t query = one.batch * all.query_len + one.query_begin, key = one.batch * all.key_len + one.key_begin;
  part.query = cut(all.query, query, one.query_len, config.num_heads * config.head_dim);
  part.key = cut(all.key, key, one.key_len, config.num_kv_heads * config.head_dim);
  part.value = cut(all.value, key, one.key_len, config.num_kv_heads * config.value_dim);
  return part;
}

TEST(Sequences, HaveTheBitsThatTheyHaveAlone) {
  Problem all({.batch = 2, .query_len = 90, .key_len = 700, .num_heads = 2, .head_dim = 16, .value_dim = 12}, 7, 3.0f);
  all.config.causal = Causal::offset;
  all.config.left_window = 300;
  all.config.alibi_slopes = {0.5f, 0.01f};
  all.config.sinks = {1.0f, 2.0f};
  all.sequences = {{0, 0, 30, 0, 300, 270}, {0, 30, 50, 300, 400, 350}, {1, 10, 80, 5, 690, 610}};
  const auto together = all.run();
  for (const Sequence& one : all.sequences) {
    const std::vector<float> part = head_output(alone(all, one));
    const size_t start = (one.batch * 90 + one.query_begin) * 2 * 12;
    EXPECT_TRUE(same_bits(together.head_output.as<float>().subspan(start, part.size()), part)) << one.query_begin;
  }
  for (size_t query : {80, 89}) {  // in no sequence
    EXPECT_EQ(together.head_output.as<float>()[query * 24], 0.0f);
    EXPECT_EQ(together.row_reference.as<float>()[query], -kInfinity);
  }
}

TEST(Sequences, WithPaddingOnTheLeftHaveTheBitsOfNone) {
  Problem plain({.query_len = 5, .key_len = 280, .head_dim = 4, .value_dim = 4});
  Problem padded = plain.copy();
  padded.key_len = 290;
  padded.key.insert(padded.key.begin(), 40, kNaN);
  padded.value.insert(padded.value.begin(), 40, kInfinity);
  padded.sequences = {{0, 0, 5, 10, 280}};
  EXPECT_TRUE(same_bits(all_bits(padded.run()), all_bits(plain.run())));
}

TEST(Sequences, AreCheckedBeforeAnythingIsComputed) {
  Problem problem({.batch = 2, .query_len = 4, .key_len = 6});
  const auto error = [&](std::vector<Sequence> sequences) {
    problem.sequences = std::move(sequences);
    return error_text([&] { problem.run(); });
  };
  const size_t huge = std::numeric_limits<size_t>::max();
  const std::string prefix = "usage: [attention] expected ";
  EXPECT_EQ(error({{2, 0, 1, 0, 1}}), prefix + "the row of a sequence inside 2; found 1 from 2 on");
  EXPECT_EQ(error({{0, 3, 2, 0, 1}}), prefix + "queries of a sequence inside 4; found 2 from 3 on");
  EXPECT_EQ(error({{0, 0, 1, 5, 2}}), prefix + "keys of a sequence inside 6; found 2 from 5 on");
  EXPECT_EQ(error({{0, 0, 1, 1, huge}}), prefix + "keys of a sequence inside 6; found 18446744073709551615 from 1 on");
  EXPECT_EQ(error({{0, 0, 2, 0, 6}, {1, 0, 4, 0, 6}, {0, 1, 1, 0, 6}}),
            prefix + "sequences that share no query; found query 1 of row 0 in two");
  EXPECT_EQ(error({{0, 0, 2, 0, 6}, {0, 0, 0, 0, 6}, {0, 2, 2, 0, 6}}), "no error");
}

TEST(Sequences, StandFarAwayWithoutOverflow) {
  Problem problem = equal_scores(2, {0, 1, 2});
  problem.config.causal = Causal::offset;
  problem.config.left_window = std::numeric_limits<size_t>::max();
  problem.config.key_offset = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(head_output(problem), (std::vector<float>{1, 1}));
  problem.config.key_offset = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(head_output(problem), (std::vector<float>{0, 0}));
}

}  // namespace
}  // namespace clearhead::tests
