// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "clearhead/kernels/elementary.h"
#include "clearhead/kernels/reference.h"
#include "tests/kernels/values.h"
#include "tests/support/targets.h"

namespace clearhead::kernels {
namespace {

using tests::as_double;
using tests::bits_of;
using tests::kInf;
using tests::kNaN;
using tests::normal_values;

std::vector<float> scaled_values(size_t count, unsigned seed, float factor) {
  auto values = normal_values(count, seed);
  for (float& value : values) value *= factor;
  return values;
}

double sum_of(std::span<const float> values) {
  double sum = 0;
  for (float value : values) sum += value;
  return sum;
}

// The recipe in plain words: 16 sums, folded 8, 4, 2, 1.
float sum_over_16_lanes(const std::vector<float>& values) {
  float lanes[16] = {};
  for (size_t i = 0; i < values.size(); ++i) lanes[i % 16] += values[i];
  for (size_t width = 8; width > 0; width /= 2) {
    for (size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

TEST(Softmax, AgreesWithDoubleForEveryLengthAndMisalignmentOnEveryTarget) {
  double worst = 0;
  tests::for_each_target([&](const std::string&) {
    for (size_t length : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 50, 256, 1000}) {
      for (size_t shift = 0; shift < 3; ++shift) {
        for (float factor : {0.1f, 1.0f, 10.0f, 100.0f, 1000.0f}) {
          const auto all = scaled_values(length + shift, unsigned(length), factor);
          const std::vector<float> x(all.begin() + ptrdiff_t(shift), all.end());
          std::vector<float> p(length);
          ASSERT_TRUE(softmax({all.data() + shift, length}, p));
          std::vector<double> want(length);
          reference::softmax(as_double(x), want);
          const float largest = *std::max_element(x.begin(), x.end());
          for (size_t i = 0; i < length; ++i) {
            const double distance = largest - x[i];
            if (distance > 87) continue;  // below 2^-126, where exactly 0 is right
            const double error = std::abs(p[i] - want[i]) / ((4e-7 + 1e-7 * distance) * want[i]);
            worst = std::max(worst, error);
            ASSERT_LE(error, 1) << "length " << length << ", element " << i << ", factor " << factor;
          }
          ASSERT_NEAR(sum_of(p), 1, 1e-6);
        }
      }
    }
  });
  std::printf("largest error: %.2f of the stated bound\n", worst);
}

TEST(Softmax, RowsOfManyEqualElementsSumToOne) {
  tests::for_each_target([](const std::string&) {
    std::vector<float> row(100'003, -7.25f);
    softmax(row, row);
    EXPECT_NEAR(sum_of(row), 1, 1e-6);
    EXPECT_TRUE(std::all_of(row.begin(), row.end(), [&](float p) { return p == row[0]; }));
  });
}

TEST(Softmax, IsDefinedWhereNothingIsSeenAndAtTheEndsOfTheRange) {
  tests::for_each_target([](const std::string&) {
    std::vector<float> nothing(37, -kInf);
    EXPECT_FALSE(softmax(nothing, nothing));
    EXPECT_EQ(bits_of(nothing), std::vector<uint32_t>(37, 0u));
    EXPECT_FALSE(softmax({}, {}));

    std::vector<float> one(37, -kInf);
    one[20] = -3e38f;
    EXPECT_TRUE(softmax(one, one));
    EXPECT_EQ(one[20], 1.0f);
    EXPECT_EQ(sum_of(one), 1.0);

    std::vector<float> low(4, std::numeric_limits<float>::lowest()), high(4, std::numeric_limits<float>::max());
    EXPECT_TRUE(softmax(low, low));
    EXPECT_TRUE(softmax(high, high));
    EXPECT_EQ(low, std::vector<float>(4, 0.25f));
    EXPECT_EQ(high, std::vector<float>(4, 0.25f));
  });
}

TEST(Softmax, NaNAndInfinityMakeTheRowNaN) {
  tests::for_each_target([](const std::string&) {
    for (float poison : {kNaN, -kNaN, kInf}) {
      for (size_t length : {1, 9, 16, 37}) {
        for (size_t at = 0; at < length; at += 4) {
          auto row = normal_values(length, 1);
          row[at] = poison;
          EXPECT_TRUE(softmax(row, row));
          EXPECT_EQ(bits_of(row), std::vector<uint32_t>(length, 0x7fc00000u)) << poison << " at " << at;
        }
      }
    }
    std::vector<float> row(40, -kInf);
    row[1] = kNaN;
    EXPECT_TRUE(softmax(row, row));
    EXPECT_TRUE(std::isnan(row[0]));
  });
}

TEST(SoftmaxTile, FollowsItsRecipeForEveryLength) {
  tests::for_each_target([](const std::string&) {
    for (size_t length = 1; length <= 256; length += length < 40 ? 1 : 27) {
      const auto scores = scaled_values(length, unsigned(length), 10);
      auto powers = scores;
      const RowSummary row = softmax_tile(powers, {});
      EXPECT_EQ(row.reference, std::ceil(*std::max_element(scores.begin(), scores.end())));
      for (size_t j = 0; j < length; ++j) ASSERT_EQ(powers[j], exp2(scores[j] - row.reference));
      ASSERT_EQ(row.sum, sum_over_16_lanes(powers)) << "length " << length;
      ASSERT_GE(row.sum, 0.5f);
    }
  });
}

TEST(SoftmaxTile, TheOrderOfTheSumShows) {
  auto powers = scaled_values(256, 3, 10);
  const RowSummary row = softmax_tile(powers, {});
  float plain = 0;
  for (float p : powers) plain += p;
  EXPECT_NE(plain, row.sum);  // so the test above can fail
}

TEST(SoftmaxTile, WhatMayNotBeSeenTouchesNothing) {
  tests::for_each_target([](const std::string&) {
    for (size_t length : {1, 5, 16, 37, 256}) {
      const auto scores = scaled_values(length, unsigned(length), 5);
      std::vector<uint8_t> visible(length);
      for (size_t j = 0; j < length; ++j) visible[j] = j % 3 == 0 ? uint8_t(1 + j % 2) : 0;
      auto hidden = scores;
      for (size_t j = 0; j < length; ++j) hidden[j] = visible[j] != 0 ? hidden[j] : -kInf;
      const RowSummary want = softmax_tile(hidden, {});
      for (float poison : {kNaN, -kNaN, kInf, 1e30f, -1e30f}) {
        auto powers = scores;
        for (size_t j = 0; j < length; ++j) powers[j] = visible[j] != 0 ? powers[j] : poison;
        const RowSummary row = softmax_tile(powers, visible);
        EXPECT_EQ(row.reference, want.reference);
        EXPECT_EQ(row.sum, want.sum);
        EXPECT_EQ(bits_of(powers), bits_of(hidden));
      }
    }
  });
}

TEST(SoftmaxTile, ARowThatSeesNothingIsZeroAndSaysSo) {
  tests::for_each_target([](const std::string&) {
    auto scores = normal_values(37, 1);
    const RowSummary masked = softmax_tile(scores, std::vector<uint8_t>(37, 0));
    EXPECT_EQ(masked.reference, -kInf);
    EXPECT_EQ(masked.sum, 0.0f);
    EXPECT_EQ(bits_of(scores), std::vector<uint32_t>(37, 0u));
    std::vector<float> low(37, -kInf);
    EXPECT_EQ(softmax_tile(low, {}).reference, -kInf);
    EXPECT_EQ(softmax_tile({}, {}).sum, 0.0f);
  });
}

TEST(SoftmaxTile, ReferenceIsNeverMinusZero) {
  tests::for_each_target([](const std::string&) {
    for (float largest : {-0.5f, -0.0f, 0.0f}) {
      std::vector<float> scores = {largest, -3.0f};
      EXPECT_EQ(std::bit_cast<uint32_t>(softmax_tile(scores, {}).reference), 0u);
    }
  });
}

TEST(SoftmaxTile, NaNThatIsSeenMakesTheRowNaN) {
  tests::for_each_target([](const std::string&) {
    std::vector<uint8_t> visible(37, 1);
    visible[4] = visible[36] = 0;
    for (float rest : {1.0f, -kInf}) {
      for (float poison : {kNaN, -kNaN, kInf}) {
        std::vector<float> scores(37, rest);
        scores[20] = poison;
        const RowSummary row = softmax_tile(scores, visible);
        EXPECT_EQ(row.reference, 0.0f);
        EXPECT_EQ(std::bit_cast<uint32_t>(row.sum), 0x7fc00000u);
        for (size_t j = 0; j < 37; ++j) {
          EXPECT_EQ(std::bit_cast<uint32_t>(scores[j]), visible[j] != 0 ? 0x7fc00000u : 0u) << j;
        }
        std::vector<float> weights(37, 1.0f);
        weights_of_scores(weights, visible, row, weights);
        EXPECT_TRUE(std::isnan(weights[0]));
        EXPECT_EQ(weights[4], 0.0f);
        EXPECT_EQ(weights[36], 0.0f);
      }
    }
  });
}

TEST(WeightsOfScores, AgreeWithDoubleAndSumToOne) {
  tests::for_each_target([](const std::string&) {
    for (size_t length : {1, 7, 16, 33, 256}) {
      const auto scores = scaled_values(length, unsigned(length), 8);
      std::vector<uint8_t> visible(length, 1);
      for (size_t j = 1; j < length; j += 3) visible[j] = 0;
      auto powers = scores;
      const RowSummary row = softmax_tile(powers, visible);
      std::vector<float> weights(length);
      weights_of_scores(scores, visible, row, weights);
      std::vector<double> natural = as_double(scores), want(length);
      for (double& s : natural) s *= std::log(2.0);
      reference::attention_weights(natural, visible, want);
      for (size_t j = 0; j < length; ++j) {
        ASSERT_NEAR(weights[j], want[j], (4e-7 + 6e-8 * std::abs(scores[j] - row.reference)) * want[j]);
        ASSERT_EQ(weights[j], visible[j] != 0 ? powers[j] / row.sum : 0.0f);
      }
      EXPECT_NEAR(sum_of(weights), 1, 1e-6);
    }
    std::vector<float> weights(5, 3.0f);
    weights_of_scores(weights, {}, {-kInf, 0.0f}, weights);
    EXPECT_EQ(bits_of(weights), std::vector<uint32_t>(5, 0u));
  });
}

TEST(Softmax, HasTheSameBitsOnEveryTargetWithFusedMultiplyAdd) {
  const auto scores = scaled_values(1003, 1, 20);
  std::vector<uint32_t> first;
  size_t ran = 0;
  tests::for_each_target([&](const std::string& target) {
    if (!tests::has_fused_multiply_add(target)) return;
    std::vector<float> all(scores.size()), powers = scores, weights(scores.size());
    softmax(scores, all);
    const RowSummary row = softmax_tile(powers, {});
    weights_of_scores(scores, {}, row, weights);
    all.insert(all.end(), powers.begin(), powers.end());
    all.insert(all.end(), weights.begin(), weights.end());
    all.insert(all.end(), {row.reference, row.sum});
    if (++ran == 1) first = bits_of(all);
    EXPECT_EQ(bits_of(all), first);
  });
  if (ran == 0) GTEST_SKIP() << "no target with fused multiply-add on this machine";
}

}  // namespace
}  // namespace clearhead::kernels
