// SPDX-License-Identifier: Apache-2.0
// What the operator Attention says about rows, keys and heads, against the weights that it shows.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "run_op.h"

namespace clearhead::tests {
namespace {

using tensor::DType;
using tensor::Shape;

constexpr size_t kBatch = 2, kHeads = 4, kQueries = 30, kKeys = 300, kRows = kBatch * kHeads * kQueries;

Tensors inputs() {
  Tensors inputs;
  inputs["Q"] = hashed_tensor(1, {kBatch, kHeads, kQueries, 8}, 4.0f);
  inputs["K"] = hashed_tensor(2, {kBatch, 2, kKeys, 8});
  inputs["V"] = hashed_tensor(3, {kBatch, 2, kKeys, 6});
  std::vector<bool> groups(2 * kKeys);
  for (size_t key = 0; key < kKeys; ++key) groups[key] = key % 3 == 0;
  groups[kKeys + 299] = true;
  inputs["key_groups"] = truths({2, kKeys}, groups);
  return inputs;
}

const std::vector<std::string> kEverything = {"Y",        "qk_matmul_output", "entropy", "distance",    "top_weights",
                                              "top_keys", "group_mass",       "map_sum", "map_maximum", "received"};

TEST(AttentionStatistics, OfNoQueriesAreAMapOfNothing) {
  Tensors none = inputs();
  none["Q"] = hashed_tensor(1, {kBatch, kHeads, 0, 8});
  const Tensors found = OpRun()("attention", none, R"({"map_queries": 4, "map_keys": 7})", {"Y", "map_sum"});
  EXPECT_EQ(found.at("Y").shape(), Shape({kBatch, kHeads, 0, 6}));
  for (const float cell : floats(found.at("map_sum"))) EXPECT_EQ(cell, 0.0f);
}

TEST(AttentionStatistics, AreThoseOfTheWeights) {
  const Tensors found = OpRun()("attention", inputs(),
                                R"({"is_causal": 1, "left_window_size": 290, "softcap": 3, "qk_matmul_output_mode": 3,
                                    "top_k": 5, "map_queries": 4, "map_keys": 7})",
                                kEverything);
  EXPECT_EQ(found.at("top_keys").dtype(), DType::i64);
  EXPECT_EQ(found.at("top_keys").shape(), Shape({kBatch, kHeads, kQueries, 5}));
  EXPECT_EQ(found.at("group_mass").shape(), Shape({kBatch, kHeads, kQueries, 2}));
  EXPECT_EQ(found.at("map_sum").shape(), Shape({kBatch, kHeads, 4, 7}));
  EXPECT_EQ(found.at("received").shape(), Shape({kBatch, kHeads, kKeys}));
  const auto weights = floats(found.at("qk_matmul_output")), top = floats(found.at("top_weights"));
  const auto entropy = floats(found.at("entropy")), distance = floats(found.at("distance"));
  const auto mass = floats(found.at("group_mass")), received = floats(found.at("received"));
  const auto map = floats(found.at("map_sum")), maximum = floats(found.at("map_maximum"));
  std::vector<double> given(kBatch * kHeads * kKeys), cells(map.size()), largest(map.size());
  for (size_t row = 0; row < kRows; ++row) {
    double bits = 0, away = 0, thirds = 0;
    const size_t query = row % kQueries, head = row / kQueries;
    for (size_t key = 0; key < kKeys; ++key) {
      const double p = weights[row * kKeys + key];
      if (p > 0) bits -= p * std::log(p);
      away += p * std::abs(static_cast<double>(key) - static_cast<double>(query));
      if (key % 3 == 0) thirds += p;
      given[head * kKeys + key] += p;
      size_t i = 0, j = 0;
      while (kQueries * (i + 1) / 4 <= query) ++i;
      while (kKeys * (j + 1) / 7 <= key) ++j;
      const size_t cell = (head * 4 + i) * 7 + j;
      cells[cell] += p;
      largest[cell] = std::max(largest[cell], p);
    }
    EXPECT_NEAR(entropy[row], bits, 2e-5);
    EXPECT_NEAR(distance[row], away, 2e-6 * (1 + away));
    EXPECT_NEAR(mass[row * 2], thirds, 1e-6);
    EXPECT_EQ(mass[row * 2 + 1], weights[row * kKeys + 299]);
    for (size_t k = 0; k < 5; ++k) {
      const int64_t key = found.at("top_keys").as<int64_t>()[row * 5 + k];
      ASSERT_EQ(key >= 0, k <= query) << "a causal row sees as many keys as it has predecessors, and itself";
      EXPECT_EQ(top[row * 5 + k], key < 0 ? 0.0f : weights[row * kKeys + static_cast<size_t>(key)]);
    }
  }
  for (size_t i = 0; i < given.size(); ++i) EXPECT_NEAR(received[i], given[i], 1e-6 * (1 + given[i]));
  for (size_t i = 0; i < cells.size(); ++i) {
    EXPECT_NEAR(map[i], cells[i], 1e-6 * (1 + cells[i]));
    EXPECT_NEAR(maximum[i], largest[i], 1e-6);
  }
}

TEST(AttentionStatistics, ChangeNoBitOfTheOutput) {
  const Tensors alone = OpRun()("attention", inputs()), watched = OpRun()("attention", inputs(), "{}", kEverything);
  EXPECT_EQ(floats(alone.at("Y")), floats(watched.at("Y")));
  EXPECT_EQ(watched.at("top_weights").shape(), Shape({kBatch, kHeads, kQueries, 8}));
  EXPECT_EQ(watched.at("map_sum").shape(), Shape({kBatch, kHeads, 64, 64}));
}

TEST(AttentionStatistics, RefuseWhatTheyCannotSay) {
  const OpRun run;
  const std::string prefix = "usage: [op attention] expected ";
  EXPECT_EQ(run.error("attention", inputs(), R"({"top_k": 65})"), prefix + "attribute top_k from 1 to 64; found 65");
  EXPECT_EQ(run.error("attention", inputs(), R"({"map_keys": 4097})"),
            prefix + "attribute map_keys from 1 to 4096; found 4097");
  Tensors without = inputs();
  without.erase("key_groups");
  EXPECT_EQ(run.error("attention", without, "{}", {"group_mass"}),
            prefix + "input key_groups for output group_mass; found none");
  Tensors other = inputs();
  other["key_groups"] = truths({2, 3}, std::vector<bool>(6));
  EXPECT_EQ(run.error("attention", other), prefix + "key_groups of shape [groups, 300]; found [2, 3]");
  other["key_groups"] = hashed_tensor(1, {2, kKeys});
  EXPECT_EQ(run.error("attention", other), prefix + "key_groups of type BOOL; found F32");
  Tensors wide = inputs();
  for (const char* name : {"Q", "K", "V"}) wide[name] = tensor::to_dtype(wide[name], DType::f64);
  EXPECT_EQ(run.error("attention", wide, "{}", {"Y", "entropy"}),
            prefix + "a run in float for output entropy; found one in double");
}

}  // namespace
}  // namespace clearhead::tests
