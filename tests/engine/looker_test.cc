// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/looker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "clearhead/base/parallel.h"

namespace clearhead::engine {
namespace {

using capture::Stage;

// A source of weights whose rows are these. Shapes: rows [heads, keys].
tensor::Tensor weights_of(const std::vector<std::vector<float>>& rows) {
  tensor::Tensor weights({1, rows.size(), 1, rows[0].size()});
  for (size_t head = 0; head < rows.size(); ++head) {
    std::ranges::copy(rows[head], weights.as<float>().subspan(head * rows[head].size()).begin());
  }
  return weights;
}

TEST(Looker, RanksByWeightTimesWhatDoesNotRest) {
  Looker looker(2, {0, 0, 1, 0});
  ASSERT_TRUE(looker.wants(Stage::weights, 0));
  // Token 0 is the first, 2 rests, 4 is the one that looks.
  looker.observe(Stage::weights, 0, weights_of({{0.5f, 0.375f, 0.125f, 0, 0}, {0, 0.25f, 0, 0.25f, 0.5f}}));
  looker.observe(Stage::weights, 1, weights_of({{1, 0, 0, 0, 0}, {0, 0, 0, 0, 1}}));
  looker.observe(Stage::weights, 2, weights_of({{0.25f, 0, 0, 0.75f, 0}, {0.125f, 0.625f, 0, 0, 0.25f}}));
  const std::vector<Look> looks = looker.take();
  ASSERT_EQ(looks.size(), 2U);
  EXPECT_EQ(looks[0].layer, 2U);
  EXPECT_EQ(looks[0].head, 0U);
  EXPECT_EQ(looks[0].key, 3U);
  EXPECT_EQ(looks[0].strength, 0.75 * 0.75);
  EXPECT_EQ(looks[1].layer, 0U);
  EXPECT_EQ(looks[1].head, 1U);
  EXPECT_EQ(looks[1].key, 1U);
  EXPECT_EQ(looks[1].weight, 0.25f);
  EXPECT_TRUE(looker.take().empty());
}

// The rule of looker.h, key by key.
Look plain_look(const std::vector<float>& row, const std::vector<uint8_t>& resting, size_t head) {
  Look best{0, head, 0, 0, 0};
  double rest = 0;
  for (size_t key = 0; key < row.size(); ++key) {
    const bool rests = key < resting.size() && (key == 0 || resting[key] != 0);
    if (rests) rest += static_cast<double>(row[key]);
    if (!rests && key + 1 < row.size() && row[key] > best.weight) best.key = key, best.weight = row[key];
  }
  best.strength = static_cast<double>(best.weight) * (1 - rest);
  return best;
}

TEST(Looker, FindsWhatAPlainLoopFindsInRowsOfAnyLengthOnAnyThreads) {
  const size_t before = base::num_threads();
  std::mt19937 generator(3);
  for (const size_t threads : {1, 2, 3}) {
    base::set_num_threads(threads);
    for (const size_t keys : {1, 2, 15, 16, 17, 18, 33, 600}) {
      std::vector<std::vector<float>> rows(9, std::vector<float>(keys));
      std::vector<uint8_t> resting(keys - keys / 3);
      for (auto& row : rows) {
        for (float& weight : row) weight = static_cast<float>(generator() % 64) / 64;  // ties too: the first counts
      }
      for (uint8_t& rests : resting) rests = generator() % 5 == 0;
      Looker looker(1, resting);
      looker.observe(Stage::weights, 0, weights_of(rows));
      Look want{};
      for (size_t head = 0; head < rows.size(); ++head) {
        const Look one = plain_look(rows[head], resting, head);
        if (head == 0 || one.strength > want.strength) want = one;
      }
      const std::vector<Look> looks = looker.take();
      ASSERT_EQ(looks.size(), want.weight > 0 ? 1U : 0U) << keys;
      if (looks.empty()) continue;
      EXPECT_EQ(looks[0].head, want.head) << keys << " keys, " << threads << " threads";
      EXPECT_EQ(looks[0].key, want.key) << keys << " keys, " << threads << " threads";
      EXPECT_EQ(looks[0].weight, want.weight);
      EXPECT_EQ(looks[0].strength, want.strength);
    }
  }
  base::set_num_threads(before);
}

}  // namespace
}  // namespace clearhead::engine
