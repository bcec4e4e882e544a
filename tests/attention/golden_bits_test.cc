// SPDX-License-Identifier: Apache-2.0
// The bits of attention, of its weights and of what it says about rows, as one machine computed them once: every
// target with fused multiply-add must find them again, for any number of threads and however queries and the batch are
// cut, each part alone or all packed behind each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <random>

#include "clearhead/attention/fused.h"
#include "clearhead/attention/received.h"
#include "clearhead/base/parallel.h"
#include "statistics_of_weights.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using attention::RowStatistics;
using capture::Stage;

constexpr size_t kBatch = 3, kQueries = 150, kKeys = 560, kHeads = 4, kKvHeads = 2, kHeadDim = 20, kValueDim = 12;
constexpr int64_t kOffset = static_cast<int64_t>(kKeys - kQueries);

// FNV-1a, 64 bits, of numbers byte by byte. Source: Fowler, Noll and Vo.
uint64_t digest(std::span<const float> values, uint64_t hash = 0xcbf29ce484222325u) {
  for (const float value : values) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    for (int byte = 0; byte < 4; ++byte) hash = (hash ^ (bits >> (8 * byte) & 0xff)) * 0x100000001b3u;
  }
  return hash;
}

Problem causal() {
  Problem problem({.batch = kBatch,
                   .query_len = kQueries,
                   .key_len = kKeys,
                   .num_heads = kHeads,
                   .num_kv_heads = kKvHeads,
                   .head_dim = kHeadDim,
                   .value_dim = kValueDim},
                  77, 3.0f);
  problem.config.causal = Causal::offset;
  problem.config.key_offset = kOffset;
  return problem;
}

Problem with_every_rule() {
  Problem problem = causal();
  problem.config.left_window = 300;
  problem.config.soft_cap = 6.0f;
  problem.config.alibi_slopes = {0.5f, 0.25f, 0.125f, 0.0625f};
  problem.config.sinks = {1.0f, -2.0f, 5.0f, 0.0f};
  return problem;
}

Problem full() {
  Problem problem = causal();
  problem.config.causal = Causal::none;
  return problem;
}

RowStatistics asked() {
  RowStatistics statistics;
  std::vector<size_t> third;
  for (size_t key = 0; key < kKeys; key += 3) third.push_back(key);
  statistics.groups = {{.keys = {{0, 255, 256}}}, {.keys = {third}}, {.distance = -1}};
  statistics.top = 8;
  return statistics;
}

// Every number of a run that belongs to a row, row by row.
struct Bits {
  size_t queries = 0, width = 0;
  std::vector<float> values = {};  // [batch, heads, queries, width]

  std::span<const float> row(size_t batch, size_t head, size_t query) const {
    return std::span(values).subspan(((batch * kHeads + head) * queries + query) * width, width);
  }
};

Bits run(const Problem& problem) {
  RowStatistics found = asked();
  const auto output = attention::fused_attention(problem.config, problem.input(), &found);
  Bits bits{problem.query_len, kValueDim + 2 + 3 + 8 + found.groups.size(), {}};
  const auto add = [&bits](std::span<const float> values, size_t at, size_t count) {
    const auto first = values.subspan(at * count, count);
    bits.values.insert(bits.values.end(), first.begin(), first.end());
  };
  for (size_t row = 0; row < found.entropy.size(); ++row) {
    const size_t query = row % problem.query_len, head = row / problem.query_len % kHeads;
    const size_t batch = row / problem.query_len / kHeads;
    add(output.head_output.as<float>(), (batch * problem.query_len + query) * kHeads + head, kValueDim);
    add(output.row_reference.as<float>(), row, 1);
    add(output.row_sum.as<float>(), row, 1);
    add(found.top_weight, row, 8);
    add(found.group_mass, row, found.groups.size());
    for (const auto* one : {&found.strongest_weight, &found.entropy, &found.mean_distance}) add(*one, row, 1);
  }
  return bits;
}

// Batches [batch, batch + batches) and queries [query, query + queries) of a problem, with the keys that they may see.
struct Part {
  size_t batch, batches, query, queries;
};

Problem cut(const Problem& whole, const Part& part) {
  Problem problem = whole.copy();
  problem.batch = part.batches;
  problem.query_len = part.queries;
  problem.config.key_offset = whole.config.key_offset + static_cast<int64_t>(part.query);
  if (whole.config.causal != Causal::none) problem.key_len = kKeys - kQueries + part.query + part.queries;
  const auto copy = [&part](const std::vector<float>& from, size_t len, size_t first, size_t count, size_t width) {
    std::vector<float> to;
    for (size_t b = part.batch; b < part.batch + part.batches; ++b) {
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>((b * len + first) * width);
      to.insert(to.end(), begin, begin + static_cast<std::ptrdiff_t>(count * width));
    }
    return to;
  };
  problem.query = copy(whole.query, kQueries, part.query, part.queries, kHeads * kHeadDim);
  problem.key = copy(whole.key, kKeys, 0, problem.key_len, kKvHeads * kHeadDim);
  problem.value = copy(whole.value, kKeys, 0, problem.key_len, kKvHeads * kValueDim);
  return problem;
}

// The whole in parts cut at random.
std::vector<Part> random_parts(std::mt19937& random) {
  std::vector<Part> parts;
  for (size_t batch = 0; batch < kBatch;) {
    const size_t batches = 1 + random() % (kBatch - batch);
    for (size_t query = 0; query < kQueries;) {
      const size_t queries = std::min<size_t>(kQueries - query, 1 + random() % 90);
      parts.push_back({batch, batches, query, queries});
      query += queries;
    }
    batch += batches;
  }
  return parts;
}

void expect_rows(const Problem& problem, const Part& part, const Bits& whole) {
  const Bits found = run(cut(problem, part));
  for (size_t b = 0; b < part.batches; ++b) {
    for (size_t head = 0; head < kHeads; ++head) {
      for (size_t i = 0; i < part.queries; ++i) {
        ASSERT_TRUE(same_bits(found.row(b, head, i), whole.row(part.batch + b, head, part.query + i)))
            << "batch " << part.batch + b << ", head " << head << ", query " << part.query + i;
      }
    }
  }
}

// The whole as one row of the batch axis, packed: its parts are sequences that stand where they stood.
Problem packed(const Problem& whole, const std::vector<Part>& parts) {
  Problem problem = whole.copy();
  problem.batch = 1;
  problem.query_len = kBatch * kQueries;
  problem.key_len = kBatch * kKeys;
  for (const Part& part : parts) {
    const size_t keys = whole.config.causal == Causal::none ? kKeys : kKeys - kQueries + part.query + part.queries;
    for (size_t b = part.batch; b < part.batch + part.batches; ++b) {
      problem.sequences.push_back({.query_begin = b * kQueries + part.query,
                                   .query_len = part.queries,
                                   .key_begin = b * kKeys,
                                   .key_len = keys,
                                   .key_offset = whole.config.key_offset + static_cast<int64_t>(part.query)});
    }
  }
  return problem;
}

void expect_rows_packed(const Problem& problem, std::mt19937& random, const Bits& whole) {
  std::vector<Part> parts = random_parts(random);
  std::ranges::shuffle(parts, random);
  const Bits found = run(packed(problem, parts));
  for (size_t b = 0; b < kBatch; ++b) {
    for (size_t head = 0; head < kHeads; ++head) {
      for (size_t i = 0; i < kQueries; ++i) {
        ASSERT_TRUE(same_bits(found.row(0, head, b * kQueries + i), whole.row(b, head, i)))
            << "packed, batch " << b << ", head " << head << ", query " << i;
      }
    }
  }
}

// Digests that a machine with AVX-512 has found.
struct Golden {
  const char* name;
  std::function<Problem()> make;
  uint64_t output, weights, received;
};

const Golden kGolden[] = {
    {"causal", causal, 0x84ad9eed2350baa0, 0x18ae0fa03659b3f1, 0xba81a6688bcbe5f0},
    {"every rule", with_every_rule, 0x5f5416c45505bf23, 0x4e7d6790ee4794a6, 0x33193493cc098bc6},
    {"full", full, 0x1d79a4634e93a82d, 0xbddc710ee3aec01c, 0x150f7960fb0b7695},
};

TEST(GoldenBits, AreFoundAgainOnEveryTargetForAnyThreadsAndCuts) {
  std::mt19937 random(20250101);
  Bits firsts[std::size(kGolden)];
  for_each_target([&](const std::string& target) {
    if (!has_fused_multiply_add(target)) return;
    for (size_t i = 0; i < std::size(kGolden); ++i) {
      const Golden& golden = kGolden[i];
      SCOPED_TRACE(golden.name);
      Bits& first = firsts[i];
      const Problem problem = golden.make();
      Everything seen;
      const auto exact = problem.run(&seen);
      std::vector<float> received(kBatch * kHeads * kKeys);
      attention::attention_received(problem.config, problem.input(), exact.row_reference.as<float>(),
                                    exact.row_sum.as<float>(), received);
      EXPECT_EQ(digest(all_bits(exact)), golden.output);
      EXPECT_EQ(digest(seen.values(Stage::weights)), golden.weights);
      EXPECT_EQ(digest(received), golden.received);
      for (size_t threads = 1; threads <= 5; ++threads) {
        base::set_num_threads(threads);
        const Bits whole = run(problem);
        if (first.values.empty()) first = whole;
        EXPECT_TRUE(same_bits(whole.values, first.values)) << threads << " threads";
        EXPECT_TRUE(same_bits(all_bits(attention::fused_attention(problem.config, problem.input())), all_bits(exact)));
        for (const Part& part : random_parts(random)) expect_rows(problem, part, whole);
        expect_rows_packed(problem, random, whole);
      }
      base::set_num_threads(base::available_threads());
    }
  });
  for (const Bits& first : firsts) EXPECT_FALSE(first.values.empty()) << "no target with fused multiply-add ran";
}

}  // namespace
}  // namespace clearhead::tests
