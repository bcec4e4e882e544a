// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/rotary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_text.h"

namespace clearhead::model {
namespace {

using tests::error_text;

TEST(Rotary, Llama3ScalesThreeBands) {
  const RotaryConfig config{
      .dim = 128, .base = 5e5, .scaling = RotaryScaling::llama3, .factor = 8, .original_len = 8192};
  RotaryConfig plain = config;
  plain.scaling = RotaryScaling::none;
  const auto scaled = rotary_frequencies(config, 1), unscaled = rotary_frequencies(plain, 1);
  for (size_t i = 0; i <= 28; ++i) EXPECT_EQ(scaled[i], unscaled[i]) << i;
  EXPECT_NEAR(unscaled[29], .00261609925, 1e-11);
  EXPECT_NEAR(scaled[29], .00216657076, 1e-11);
  EXPECT_NEAR(scaled[30], .00137189357, 1e-11);
  EXPECT_NEAR(unscaled[35], 7.644969883e-4, 1e-13);
  for (size_t i = 35; i < 64; ++i) EXPECT_DOUBLE_EQ(scaled[i], unscaled[i] / 8) << i;
}

TEST(Rotary, YarnMultipliesCosinesAndSines) {
  RotaryConfig config{.dim = 128, .scaling = RotaryScaling::yarn, .original_len = 4096};
  for (const auto& [factor, expected] :
       {std::pair(4.0, 1.138629436), {8.0, 1.207944154}, {40.0, 1.368887945}, {1.0, 1.0}}) {
    config.factor = factor;
    EXPECT_NEAR(config.effective_attention_factor(), expected, 1e-9);
  }
  config.factor = 4;
  const auto frequencies = rotary_frequencies(config, 1);
  for (size_t i = 0; i < 64; ++i) {
    const double plain = std::pow(1e4, -2.0 * static_cast<double>(i) / 128);
    if (i <= 20 || i >= 46) {
      EXPECT_DOUBLE_EQ(frequencies[i], i <= 20 ? plain : plain / 4) << i;
    }
  }
  const double middle = std::pow(1e4, -2.0 * 33 / 128);
  EXPECT_NEAR(frequencies[33], middle / 4 / 2 + middle / 2, 1e-12);
  const RotaryTable table = rotary_table(config, 1, 0, 1);
  EXPECT_FLOAT_EQ(table.cosines.as<float>()[0], 1.138629436f);
  config.attention_factor = 0.5;
  EXPECT_EQ(config.effective_attention_factor(), 0.5);
}

TEST(Rotary, DynamicTakesAnotherBaseForLongTexts) {
  const RotaryConfig config{.dim = 128, .scaling = RotaryScaling::dynamic, .factor = 2, .original_len = 2048};
  const auto base = [&](size_t seq_len) { return std::pow(rotary_frequencies(config, seq_len)[1], -64.0); };
  EXPECT_NEAR(base(1), 1e4, 1e-6);
  EXPECT_NEAR(base(2048), 1e4, 1e-6);
  EXPECT_NEAR(base(4096), 30527.7367, 1e-3);
}

TEST(Rotary, LongropeTakesItsLongFactorsAboveTheOriginalLength) {
  const RotaryConfig config{.dim = 4,
                            .scaling = RotaryScaling::longrope,
                            .factor = 32,
                            .original_len = 4096,
                            .short_factors = {1, 2},
                            .long_factors = {3, 4}};
  EXPECT_NEAR(config.effective_attention_factor(), 1.190238071, 1e-9);
  EXPECT_DOUBLE_EQ(rotary_frequencies(config, 4096)[0], 1);
  EXPECT_DOUBLE_EQ(rotary_frequencies(config, 4097)[0], 1.0 / 3);
  EXPECT_DOUBLE_EQ(rotary_frequencies(config, 4096)[1], 0.01 / 2);
}

TEST(Rotary, NeighbouringPositionsDifferHoweverFar) {
  const RotaryConfig config{.dim = 2};
  for (const size_t position : {256, 4095, 15962, 131071}) {
    const RotaryTable table = rotary_table(config, position + 2, position, 2);
    EXPECT_NEAR(table.cosines.as<float>()[0], std::cos(static_cast<double>(position)), 1e-7);
    EXPECT_GT(std::abs(table.cosines.as<float>()[0] - table.cosines.as<float>()[1]), 1e-3);
  }
}

TEST(Rotary, DivisorsDivideFrequencies) {
  const std::vector<float> divisors = {2, 4};
  const auto frequencies = rotary_frequencies({.dim = 4}, 1, divisors);
  EXPECT_DOUBLE_EQ(frequencies[0], 0.5);
  EXPECT_DOUBLE_EQ(frequencies[1], 0.01 / 4);
}

TEST(Rotary, WhatCannotBeComputedIsRefused) {
  const auto complaint = [](const RotaryConfig& config) { return error_text([&] { config.check(8); }); };
  const std::string where = "[rotary positions] expected ";
  EXPECT_EQ(complaint({.dim = 3}), where + "an even number of dimensions from 2 to 8; found 3");
  EXPECT_EQ(complaint({.dim = 10}), where + "an even number of dimensions from 2 to 8; found 10");
  EXPECT_EQ(complaint({.dim = 4, .base = 1}), where + "a base above 1; found 1");
  EXPECT_EQ(complaint({.dim = 4, .scaling = RotaryScaling::linear, .factor = 0}), where + "a factor above 0; found 0");
  EXPECT_EQ(complaint({.dim = 4, .scaling = RotaryScaling::yarn}), where + "an original length of 2 or more; found 0");
  EXPECT_EQ(
      complaint({.dim = 4, .scaling = RotaryScaling::llama3, .original_len = 8, .low_factor = 4, .high_factor = 4}),
      where + "a low_freq_factor above 0 and a high_freq_factor above it; found 4 and 4");
  EXPECT_EQ(complaint({.dim = 2, .scaling = RotaryScaling::dynamic, .original_len = 8}),
            where + "more than 2 dimensions for the dynamic base; found 2");
  EXPECT_EQ(complaint({.dim = 4, .scaling = RotaryScaling::longrope, .factor = 2, .original_len = 8}),
            where + "2 factors of longrope; found 0");
}

}  // namespace
}  // namespace clearhead::model
