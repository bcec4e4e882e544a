// SPDX-License-Identifier: Apache-2.0
// Attention over a cache, which keeps keys and values packed, against attention over the same ones as they came: bit
// for bit, however they came.
#include "clearhead/attention/key_value_cache.h"

#include <gtest/gtest.h>

#include <limits>

#include "clearhead/attention/fused.h"
#include "clearhead/attention/weights.h"
#include "clearhead/base/parallel.h"
#include "problem.h"
#include "tests/support/error_text.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using attention::KeyValueCache;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Restores the number of threads.
struct Threads {
  ~Threads() { base::set_num_threads(before); }
  size_t before = base::num_threads();
};

// A text of one sequence that is read from its beginning to its end.
Problem text(size_t len = 540) {
  Problem problem(
      {.query_len = len, .key_len = len, .num_heads = 6, .num_kv_heads = 3, .head_dim = 24, .value_dim = 20}, 7, 3.0f);
  problem.config.causal = Causal::offset;
  return problem;
}

std::span<const float> rows_of(const std::vector<float>& values, size_t rows, size_t begin, size_t count) {
  const size_t width = values.size() / rows;
  return std::span(values).subspan(begin * width, count * width);
}

void append(KeyValueCache& cache, const Problem& problem, size_t begin, size_t count) {
  cache.append(rows_of(problem.key, problem.key_len, begin, count),
               rows_of(problem.value, problem.key_len, begin, count));
}

// The next count queries of a text, over a cache that has their keys.
attention::AttentionOutput attend(const Problem& problem, const KeyValueCache& cache, size_t count) {
  attention::AttentionConfig config = problem.config;
  const size_t first = cache.key_len() - count;
  config.key_offset = static_cast<int64_t>(first);
  const KeyValueCache* caches[] = {&cache};
  attention::AttentionInput input;
  input.query_len = count;
  input.key_len = cache.key_len();
  input.query = rows_of(problem.query, problem.query_len, first, count);
  input.caches = caches;
  return attention::fused_attention(config, input);
}

void expect_rows(const attention::AttentionOutput& found, const attention::AttentionOutput& want, size_t first,
                 size_t count) {
  const size_t heads = want.row_sum.shape()[1], len = want.row_sum.shape()[2];
  EXPECT_TRUE(same_bits(found.head_output.as<float>(), rows_of(floats(want.head_output), len, first, count)));
  for (size_t head = 0; head < heads; ++head) {
    EXPECT_TRUE(same_bits(found.row_sum.as<float>().subspan(head * count, count),
                          want.row_sum.as<float>().subspan(head * len + first, count)));
    EXPECT_TRUE(same_bits(found.row_reference.as<float>().subspan(head * count, count),
                          want.row_reference.as<float>().subspan(head * len + first, count)));
  }
}

// Reads a text in chunks of these lengths, the last one as often as it takes.
void expect_full_pass(const Problem& problem, const std::vector<size_t>& chunks) {
  const auto want = problem.run();
  KeyValueCache cache(problem.config);
  for (size_t chunk = 0; cache.key_len() < problem.key_len; ++chunk) {
    const size_t first = cache.key_len();
    const size_t count = std::min(chunks[std::min(chunk, chunks.size() - 1)], problem.key_len - first);
    append(cache, problem, first, count);
    SCOPED_TRACE(testing::Message() << "queries from " << first << " on");
    expect_rows(attend(problem, cache, count), want, first, count);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(KeyValueCache, DecodesTheBitsOfTheFullPassOnEveryTargetForAnyNumberOfThreads) {
  const Threads restore;
  for_each_target([](const std::string&) {
    for (size_t threads : {1, 2, 3, 5}) {
      base::set_num_threads(threads);
      expect_full_pass(text(), {250, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 240, 1});
    }
  });
}

TEST(KeyValueCache, GivesTheBitsOfTheFullPassForAnyChunks) {
  for (const std::vector<size_t>& chunks :
       {std::vector<size_t>{540}, {1}, {7}, {16}, {255, 1, 1}, {256}, {257, 3}, {100, 300, 13}}) {
    expect_full_pass(text(), chunks);
  }
}

TEST(KeyValueCache, GivesTheBitsOfTheFullPassForEveryBehaviour) {
  for (int behaviour = 0; behaviour < 4; ++behaviour) {
    SCOPED_TRACE(behaviour);
    Problem problem = text();
    switch (behaviour) {
      case 0: problem.config.left_window = 100; break;
      case 1: problem.config.soft_cap = 5.0f; break;
      case 2: problem.config.alibi_slopes = {.5f, .25f, .125f, .0625f, .03125f, .01f}; break;
      default: problem.config.sinks = {1, -2, 30, 0, 0, 5};
    }
    expect_full_pass(problem, {100, 13, 1, 1, 200});
  }
}

TEST(KeyValueCache, GivesTheBitsOfTheExactPath) {
  const Problem problem = text();
  KeyValueCache cache(problem.config);
  append(cache, problem, 0, 540);
  const KeyValueCache* caches[] = {&cache};
  attention::AttentionInput input = problem.input();
  input.key = input.value = {};
  input.caches = caches;
  Everything seen, wanted;
  EXPECT_TRUE(
      same_bits(all_bits(attention::exact_attention(problem.config, input, &seen)), all_bits(problem.run(&wanted))));
  EXPECT_TRUE(same_bits(seen.values(capture::Stage::weights), wanted.values(capture::Stage::weights)));
}

TEST(KeyValueCache, ForgetsWhatIsTruncated) {
  Problem problem = text();
  Problem other = problem.copy();
  for (size_t key : {300, 519}) {
    other.key[key * 3 * 24 + 5] = kNaN;
    other.value[key * 3 * 20 + 5] = kNaN;
  }
  KeyValueCache cache(problem.config);
  append(cache, other, 0, 540);
  for (size_t len : {516, 513, 270, 256, 10, 0}) {
    if (len > 300) {
      append(cache, other, cache.key_len(), 540 - cache.key_len());
    }
    cache.truncate(len);
    EXPECT_EQ(cache.key_len(), len);
    const Problem& kept = len > 300 ? other : problem;
    append(cache, kept, len, 540 - len);
    expect_rows(attend(kept, cache, 540), kept.run(), 0, 540);
  }
  cache.truncate(0);
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(KeyValueCache, WithoutEvictedTilesHasTheBitsOfAMask) {
  const Threads restore;
  Problem problem = text(800);
  KeyValueCache cache(problem.config);
  append(cache, problem, 0, 800);
  const size_t all = cache.bytes();
  cache.evict_before(2);
  EXPECT_EQ(cache.evicted(), 512u);
  EXPECT_EQ(cache.bytes(), all / 2);
  std::vector<bool> visible(800, true);
  std::fill_n(visible.begin(), 512, false);
  problem.set_mask(visible, {1, 1, 1, 800});
  const auto want = problem.run();
  for (size_t threads : {1, 2}) {
    base::set_num_threads(threads);
    for (size_t count : {1, 10, 290}) expect_rows(attend(problem, cache, count), want, 800 - count, count);
  }
}

TEST(KeyValueCache, OfEachSequenceOfABatchMayHaveItsOwnLength) {
  const Threads restore;
  const Problem long_text = text(540), short_text = text(77);
  KeyValueCache long_cache(long_text.config), short_cache(long_text.config);
  append(long_cache, long_text, 0, 540);
  append(short_cache, short_text, 0, 77);
  const KeyValueCache* caches[] = {&long_cache, &short_cache};
  const attention::Sequence sequences[] = {{0, 0, 1, 0, 540, 539}, {1, 0, 1, 0, 77, 76}};
  std::vector<float> query;
  for (const auto& last : {rows_of(long_text.query, 540, 539, 1), rows_of(short_text.query, 77, 76, 1)}) {
    query.insert(query.end(), last.begin(), last.end());
  }
  attention::AttentionInput input;
  input.batch = 2;
  input.query_len = 1;
  input.key_len = 540;
  input.query = query;
  input.sequences = sequences;
  input.caches = caches;
  for (size_t threads : {1, 4}) {
    base::set_num_threads(threads);
    const auto found = attention::fused_attention(long_text.config, input);
    const auto output = found.head_output.as<float>();
    EXPECT_TRUE(same_bits(output.first(120), rows_of(floats(long_text.run().head_output), 540, 539, 1)));
    EXPECT_TRUE(same_bits(output.subspan(120), rows_of(floats(short_text.run().head_output), 77, 76, 1)));
  }
}

// Keys and values as a cache in bfloat16 keeps them.
Problem rounded_text() {
  Problem problem = text();
  attention::round_to_bfloat16(problem.key);
  attention::round_to_bfloat16(problem.value);
  return problem;
}

TEST(KeyValueCache, InBfloat16HasTheBitsOfTheRoundedKeysAndValues) {
  const Problem exact = text();
  const auto truth = rounded_text().run();
  const Threads threads;
  for (const size_t count : {size_t{1}, size_t{2}, size_t{3}}) {
    base::set_num_threads(count);
    KeyValueCache cache(exact.config, attention::Precision::bfloat16);
    for (const size_t part : {size_t{1}, size_t{250}, size_t{9}, size_t{1}, size_t{1}, size_t{278}}) {
      const size_t first = cache.key_len();
      append(cache, exact, first, part);
      const auto found = attend(exact, cache, part);
      EXPECT_TRUE(same_bits(floats(found.head_output), rows_of(floats(truth.head_output), 540, first, part)))
          << count << " threads, key " << first;
    }
    EXPECT_EQ(cache.key_len(), 540U);
    KeyValueCache in_floats(exact.config);
    append(in_floats, exact, 0, 540);
    EXPECT_EQ(cache.bytes() * 2, in_floats.bytes());
    EXPECT_EQ(KeyValueCache::bytes(exact.config, 540, attention::Precision::bfloat16), cache.bytes());
  }
}

TEST(KeyValueCache, InBfloat16KnowsWhetherValuesAreFinite) {
  Problem problem = text(300);
  problem.value[280 * 60 + 3] = kNaN;
  KeyValueCache cache(problem.config, attention::Precision::bfloat16);
  append(cache, problem, 0, 300);
  std::vector<float> keys(256 * 24), values(256 * 32);
  EXPECT_TRUE(cache.tile(0, 0, keys.data(), values.data()).finite);
  EXPECT_FALSE(cache.tile(0, 1, keys.data(), values.data()).finite);
  EXPECT_TRUE(cache.tile(1, 1, keys.data(), values.data()).finite);
  cache.truncate(280);
  EXPECT_TRUE(cache.tile(0, 1, keys.data(), values.data()).finite);
}

// The last 10 of 540 queries in a window, over a cache whose first tile is gone. The problem must outlive it.
struct Windowed {
  Windowed(const Problem& problem, attention::Precision kept) : cache(problem.config, kept), config(problem.config) {
    append(cache, problem, 0, 540);
    cache.evict_before(1);
    config.key_offset = 530;
    config.left_window = 200;
    input.query_len = 10;
    input.key_len = 540;
    input.query = rows_of(problem.query, 540, 530, 10);
    input.caches = caches;
    output = attention::fused_attention(config, input);
  }

  attention::RebuiltWeights weights(capture::Stage stage) const {
    return {config, input, {output.row_reference.as<float>(), output.row_sum.as<float>()}, stage};
  }

  KeyValueCache cache;
  const KeyValueCache* caches[1] = {&cache};
  attention::AttentionConfig config;
  attention::AttentionInput input;
  attention::AttentionOutput output;
};

TEST(KeyValueCache, ShowsTheWeightsOfTheFullPass) {
  for (const auto kept : {attention::Precision::single, attention::Precision::bfloat16}) {
    const Problem problem = kept == attention::Precision::single ? text() : rounded_text();
    const Windowed windowed(problem, kept);
    const attention::RebuiltWeights source = windowed.weights(capture::Stage::kernel_scores);
    std::vector<float> found(3 * 77), expected(3 * 77), hidden(300);
    source.tile({0, 4, 2, 3, 450, 77}, found);
    source.tile({0, 4, 2, 1, 0, 300}, hidden);
    for (const float score : hidden) EXPECT_EQ(score, -std::numeric_limits<float>::infinity());
    const attention::RebuiltWeights scores(problem.config, problem.input(), {}, capture::Stage::kernel_scores);
    scores.tile({0, 4, 532, 3, 450, 77}, expected);
    EXPECT_TRUE(same_bits(found, expected));
  }
}

// All stages of a query, some heads at a time.
TEST(KeyValueCache, ShowsARowOfSeveralHeadsAsOneAfterTheOther) {
  for (const auto kept : {attention::Precision::single, attention::Precision::bfloat16}) {
    const Problem problem = text();
    const Windowed windowed(problem, kept);
    using capture::Stage;
    for (const Stage stage : {Stage::raw_scores, Stage::scores, Stage::kernel_scores, Stage::weights}) {
      const attention::RebuiltWeights source = windowed.weights(stage);
      const size_t heads = source.num_heads();
      for (size_t first = 0; first < heads; ++first) {
        for (size_t count = 1; first + count <= heads; ++count) {
          std::vector<float> together(count * 540), alone(540);
          source.rows(0, first, count, 7, together);
          for (size_t i = 0; i < count; ++i) {
            source.row(0, first + i, 7, alone);
            ASSERT_TRUE(same_bits(std::span(together).subspan(i * 540, 540), alone))
                << first << " " << count << " " << i;
          }
        }
      }
    }
  }
}

TEST(KeyValueCache, RefusesWhatDoesNotFit) {
  const Problem problem = text(20);
  KeyValueCache cache(problem.config);
  EXPECT_EQ(error_text([&] { cache.append(std::span(problem.key).first(72), std::span(problem.value).first(59)); }),
            "usage: [key value cache] expected as many keys of 72 numbers as values of 60; found 72 and 59 numbers");
  append(cache, problem, 0, 20);
  EXPECT_EQ(error_text([&] { cache.truncate(21); }),
            "usage: [key value cache] expected a length from 0 to 20 to keep; found 21");
  EXPECT_EQ(error_text([&] { cache.evict_before(1); }),
            "usage: [key value cache] expected at most 0 whole tiles to evict; found 1");
  attention::AttentionConfig rounded = problem.config;
  rounded.precision = attention::Precision::bfloat16;
  EXPECT_EQ(error_text([&] { KeyValueCache refused(rounded); }),
            "usage: [key value cache] expected keys and values in single precision; found bfloat16");
}

TEST(KeyValueCache, IsRefusedWhereItDoesNotFit) {
  const Problem problem = text(20);
  KeyValueCache cache(problem.config);
  append(cache, problem, 0, 19);
  const KeyValueCache* caches[] = {&cache};
  attention::AttentionInput input = problem.input();
  input.caches = caches;
  const auto refusal = [&] { return error_text([&] { attention::fused_attention(problem.config, input); }); };
  EXPECT_EQ(refusal(), "usage: [attention] expected key of shape [0]; found 1440 elements");
  input.key = input.value = {};
  EXPECT_EQ(refusal(), "usage: [attention] expected a sequence of the 19 keys of its cache; found keys from 0 to 20");
  input.batch = 2;
  EXPECT_EQ(refusal(), "usage: [attention] expected query of shape [2, 20, 6, 24]; found 2880 elements");
}

}  // namespace
}  // namespace clearhead::tests
