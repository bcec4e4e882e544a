// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace clearhead::kernels::reference {
namespace {

using Values = std::vector<double>;
constexpr double kNothing = -std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Reference, LinearMultipliesByTheTransposeAndAddsTheBias) {
  const Values x = {1, 2, 3}, weight = {1, 0, -1, 2, 2, 2}, bias = {10, 20};
  Values y(2);
  linear(x, weight, bias, y);
  EXPECT_EQ(y, (Values{8, 32}));
  linear(x, weight, {}, y);
  EXPECT_EQ(y, (Values{-2, 12}));
}

TEST(Reference, NormsHaveTheirMeanAndSize) {
  const Values x = {1, 2, 3, 6}, gain = {2, 2, 2, 2}, bias = {1, 1, 1, 1};
  Values y(4);
  layer_norm(x, gain, bias, 0, y);  // mean 3, variance 14 / 4
  EXPECT_NEAR(y[3], 1 + 2 * 3 / std::sqrt(3.5), 1e-15);
  EXPECT_NEAR(y[0] + y[1] + y[2] + y[3], 4, 1e-14);
  rms_norm(x, gain, 0, y);  // mean of squares 50 / 4
  EXPECT_NEAR(y[3], 2 * 6 / std::sqrt(12.5), 1e-15);
  layer_norm(Values{5, 5}, Values{1, 1}, Values{0, 0}, 1e-5, std::span(y).first(2));
  EXPECT_EQ(y[0], 0);
}

TEST(Reference, SoftmaxOfEqualElementsIsEven) {
  Values p(4);
  EXPECT_TRUE(softmax(Values{1000, 1000, 1000, kNothing}, p));
  EXPECT_EQ(p, (Values{1.0 / 3, 1.0 / 3, 1.0 / 3, 0}));
  EXPECT_TRUE(softmax(Values{0, std::log(3.0), kNothing, kNothing}, p));
  EXPECT_NEAR(p[1], 0.75, 1e-15);
  EXPECT_FALSE(softmax(Values{kNothing, kNothing}, std::span(p).first(2)));
  EXPECT_EQ(p[0], 0);
  EXPECT_TRUE(softmax(Values{kNothing, kNaN}, std::span(p).first(2)));
  EXPECT_TRUE(std::isnan(p[0]));
}

TEST(Reference, ActivationsHaveKnownValues) {
  EXPECT_NEAR(gelu(-2.7), -0.00936082927, 1e-11);
  EXPECT_NEAR(gelu_tanh(-2.7), -0.00888759464, 1e-11);
  EXPECT_NEAR(gelu(3), 2.995950306, 1e-9);
  EXPECT_NEAR(gelu_tanh(3), 2.996362608, 1e-9);
  EXPECT_NEAR(gelu(1), 0.8413447461, 1e-10);
  EXPECT_NEAR(gelu_tanh(1), 0.8411919906, 1e-10);
  EXPECT_NEAR(silu(1), 0.7310585786, 1e-10);
  EXPECT_EQ(relu(-3), 0);
  EXPECT_EQ(relu(3), 3);
  EXPECT_TRUE(std::isnan(relu(kNaN)));
}

TEST(Reference, AttentionLeavesOutWhatMayNotBeSeen) {
  const Values query = {1, 2}, keys = {1, 0, 0, 1, kNaN, kNaN};
  Values scores(3), weights(3), output(1);
  attention_scores(query, keys, 0.5, scores);
  EXPECT_EQ(scores[0], 0.5);
  EXPECT_EQ(scores[1], 1.0);
  const std::vector<uint8_t> visible = {1, 1, 0};
  EXPECT_TRUE(attention_weights(scores, visible, weights));
  EXPECT_NEAR(weights[1] / weights[0], std::exp(0.5), 1e-14);
  EXPECT_EQ(weights[2], 0);
  weighted_sum(weights, visible, Values{10, 20, kNaN}, output);
  EXPECT_NEAR(output[0], 10 * weights[0] + 20 * weights[1], 1e-14);
  EXPECT_FALSE(attention_weights(scores, std::vector<uint8_t>{0, 0, 0}, weights));
  EXPECT_EQ(weights, (Values{0, 0, 0}));
}

}  // namespace
}  // namespace clearhead::kernels::reference
