// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "tests/support/error_text.h"

namespace clearhead::engine {
namespace {

using tests::error_text;

constexpr std::array kLogits = {1.0f, 3.0f, 2.0f, 3.0f, -1.0f};

// How often each token is drawn.
std::map<size_t, size_t> counts(const Sampling& sampling, size_t draws = 4000) {
  Sampler sampler(sampling);
  std::map<size_t, size_t> counts;
  for (size_t i = 0; i < draws; ++i) ++counts[sampler.pick(kLogits, {})];
  return counts;
}

TEST(Sampler, WithoutTemperatureTheFirstOfTheLargestIsTaken) {
  Sampler sampler({});
  EXPECT_EQ(sampler.pick(kLogits, {}), 1U);
  EXPECT_EQ(sampler.pick(kLogits, {}), 1U);
}

TEST(Sampler, DrawsAsOftenAsProbable) {
  const auto found = counts({.temperature = 1});
  double sum = 0;
  for (float logit : kLogits) sum += std::exp(static_cast<double>(logit));
  for (size_t id = 0; id < kLogits.size(); ++id) {
    const double expected = std::exp(static_cast<double>(kLogits[id])) / sum;
    EXPECT_NEAR(static_cast<double>(found.contains(id) ? found.at(id) : 0) / 4000, expected, 0.03) << id;
  }
}

TEST(Sampler, TheSameSeedDrawsTheSame) {
  Sampler one({.temperature = 1, .seed = 5}), same({.temperature = 1, .seed = 5}), other({.temperature = 1, .seed = 6});
  size_t different = 0;
  for (int i = 0; i < 100; ++i) {
    const size_t id = one.pick(kLogits, {});
    EXPECT_EQ(same.pick(kLogits, {}), id);
    different += other.pick(kLogits, {}) != id;
  }
  EXPECT_GT(different, 20U);
}

TEST(Sampler, CutsLeaveTheLikeliest) {
  const auto keys = [](const Sampling& sampling) {
    std::vector<size_t> ids;
    for (const auto& [id, count] : counts(sampling)) ids.push_back(id);
    return ids;
  };
  EXPECT_EQ(keys({.temperature = 5, .top_k = 1}), (std::vector<size_t>{1}));
  EXPECT_EQ(keys({.temperature = 5, .top_k = 3}), (std::vector<size_t>{1, 2, 3}));
  EXPECT_EQ(keys({.temperature = 5, .top_k = 99}), (std::vector<size_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(keys({.temperature = 1, .top_p = 0.3}), (std::vector<size_t>{1}));  // 0.40 alone
  EXPECT_EQ(keys({.temperature = 1, .top_p = 0.7}), (std::vector<size_t>{1, 3}));
  EXPECT_EQ(keys({.temperature = 1, .top_p = 1e-9}), (std::vector<size_t>{1}));
  EXPECT_EQ(keys({.temperature = 1, .min_p = 0.9}), (std::vector<size_t>{1, 3}));
  EXPECT_EQ(keys({.temperature = 1, .min_p = 0.3}), (std::vector<size_t>{1, 2, 3}));  // 2 is 0.37 times as likely
}

TEST(Sampler, RepetitionIsPenalizedOnBothSidesOfZero) {
  Sampler sampler({.repetition_penalty = 2});
  const std::array<int64_t, 3> seen = {1, 3, 1};
  EXPECT_EQ(sampler.pick(kLogits, seen), 2U);  // 3 / 2 is below 2
  const std::array negative = {-1.0f, -1.5f};
  const std::array<int64_t, 1> first = {0};
  EXPECT_EQ(sampler.pick(negative, first), 1U);  // -1 times 2 is below -1.5
}

TEST(Sampler, LogitsThatAreNoNumbersAreNeverDrawn) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Sampler sampler({.temperature = 1});
  EXPECT_EQ(sampler.pick(std::array{nan, 1.0f, nan}, {}), 1U);
  EXPECT_EQ(error_text([&] {
              sampler.pick(std::array{nan, nan}, {});
            }),
            "[generate] expected logits that are numbers; found none; the model's parameters are damaged");
}

TEST(Sampler, OnlyChoicesAreDrawn) {
  const Choices choices = {.num_pieces = 3, .holes = {1, 2}, .end_ids = {4, -1, 99}};
  for (const Sampling& sampling : {Sampling{}, Sampling{.temperature = 9}, Sampling{.temperature = 9, .top_k = 2},
                                   Sampling{.temperature = 9, .top_p = 0.99},
                                   Sampling{.temperature = 9, .min_p = 0.01, .repetition_penalty = 2}}) {
    Sampler sampler(sampling, choices);
    std::map<size_t, size_t> drawn;
    const std::array<int64_t, 1> seen = {0};
    for (size_t i = 0; i < 200; ++i) ++drawn[sampler.pick(kLogits, seen)];
    EXPECT_EQ(drawn.size(), sampling.temperature == 0 ? 1U : 2U);
    EXPECT_TRUE(std::ranges::all_of(drawn, [](const auto& one) { return one.first == 0 || one.first == 4; }));
  }
  EXPECT_EQ(error_text([&] { Sampler({}, {.num_pieces = 0}).pick(kLogits, {}); }),
            "[generate] expected logits that are numbers; found none; the model's parameters are damaged");
}

TEST(Sampler, SettingsOutOfRangeAreRefused) {
  const auto complaint = [](const Sampling& sampling) { return error_text([&] { Sampler{sampling}; }); };
  EXPECT_EQ(complaint({.temperature = -1}), "usage: [temperature] expected a finite number, 0 or more; found -1");
  EXPECT_EQ(complaint({.temperature = std::numeric_limits<double>::infinity()}),
            "usage: [temperature] expected a finite number, 0 or more; found inf");
  EXPECT_EQ(complaint({.top_p = 0}), "usage: [top-p] expected above 0 and at most 1; found 0");
  EXPECT_EQ(complaint({.min_p = 1.5}), "usage: [min-p] expected 0 to 1; found 1.5");
  EXPECT_EQ(complaint({.repetition_penalty = 0}),
            "usage: [repetition-penalty] expected a finite number above 0; found 0");
}

}  // namespace
}  // namespace clearhead::engine
