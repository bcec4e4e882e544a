// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/verify_bounded.h"

#include <gtest/gtest.h>

#include <cmath>

#include "clearhead/engine/verify_compare.h"
#include "clearhead/engine/verify_rows.h"
#include "tests/engine/random_model.h"

namespace clearhead::engine {
namespace {

using capture::Stage;
using tests::hashed_value;
using tests::hashed_values;

std::vector<double> doubles(uint64_t stream, size_t count) {
  const std::vector<float> values = hashed_values(stream, count);
  return {values.begin(), values.end()};
}

TEST(Bounded, SumsHaveTheStatedBound) {
  EXPECT_EQ(sum_bound(2, 3.0), 10 * 0x1p-24 * 3 + 0x1p-126);
  const std::vector<double> a = {1, -2}, b = {3, 4};
  const Bounded sum = add({a, b});
  EXPECT_EQ(sum.values, (std::vector<double>{4, 2}));
  EXPECT_EQ(sum.bounds, (std::vector<double>{sum_bound(2, 4), sum_bound(2, 6)}));
}

TEST(Bounded, MagnitudesCountEveryTerm) {
  for (size_t count : {0, 1, 3, 4, 5, 11}) {
    const std::vector<double> a(count, -2), b(count, 3);
    EXPECT_EQ(magnitude_of(a, b), 6.0 * static_cast<double>(count));
  }
}

TEST(Bounded, ProjectionsTakeTheChosenOutputsAndPartOfTheInput) {
  tensor::Tensor weight({3, 4}), bias({3});
  for (size_t i = 0; i < 12; ++i) weight.as<float>()[i] = static_cast<float>(i);
  for (size_t i = 0; i < 3; ++i) bias.as<float>()[i] = static_cast<float>(100 * i);
  const linear::PackedLinear packed(weight, bias.view());
  const std::vector<double> x = {1, -1, 2, 3};  // [2, 2]
  const std::vector<size_t> outputs = {2, 0};   // W[2] = 8 9 10 11, W[0] = 0 1 2 3
  const Bounded with = project(x, 2, {packed, outputs, 1, 2, true}),
                without = project(x, 2, {packed, outputs, 1, 2, false});
  EXPECT_EQ(with.values, (std::vector<double>{199, -1, 248, 8}));
  EXPECT_EQ(without.values, (std::vector<double>{-1, -1, 48, 8}));
  EXPECT_EQ(with.bounds[0], sum_bound(3, 9 + 10 + 200));
  EXPECT_EQ(without.bounds[0], sum_bound(2, 9 + 10));
}

TEST(Bounded, WhatTheInputOfANormIsOffStaysInItsBound) {
  constexpr size_t kWidth = 11;
  tests::RandomParameters draw;
  const model::NormParameters layer = draw.norm(kWidth), rms = draw.norm(kWidth, model::NormKind::rms);
  for (uint64_t stream = 0; stream < 200; ++stream) {
    const model::NormParameters& parameters = stream % 2 == 0 ? layer : rms;
    Bounded x = exactly(doubles(1000 + stream, kWidth));
    const Bounded exact = norm(x, parameters, 1e-5);
    Bounded off = x;
    for (size_t i = 0; i < kWidth; ++i) {
      x.bounds[i] = 1e-5 * std::abs(hashed_value(5000 + stream, i));
      off.values[i] += hashed_value(9000 + stream, i) < 0 ? -x.bounds[i] : x.bounds[i];
    }
    const Bounded bounded = norm(x, parameters, 1e-5), moved = norm(off, parameters, 1e-5);
    for (size_t i = 0; i < kWidth; ++i) {
      EXPECT_LE(std::abs(moved.values[i] - exact.values[i]), bounded.bounds[i]);
      EXPECT_LT(bounded.bounds[i], 1e-3) << "a bound that allows everything";
    }
  }
}

TEST(Bounded, NoActivationIsSteeperThanItsBoundSays) {
  constexpr double kStep = 1e-3;
  using enum linear::Activation;
  for (linear::Activation activation : {none, gelu, gelu_tanh, silu, relu}) {
    for (double x = -10; x < 10; x += kStep) {
      Bounded here(1), further(1);
      here.values[0] = x;
      here.bounds[0] = kStep;
      further.values[0] = x + kStep;
      here = activate(here, activation);
      further = activate(further, activation);
      ASSERT_LE(std::abs(further.values[0] - here.values[0]), here.bounds[0] * (1 + 1e-9)) << x;
      ASSERT_LE(here.bounds[0], 1.14 * kStep);
    }
  }
}

TEST(Bounded, ARowIsSummarisedByAWholeNumberAndASum) {
  const double infinity = std::numeric_limits<double>::infinity();
  const RowSummary row = summarise(std::vector<double>{1.5, -infinity, 0.5}, -infinity);
  EXPECT_EQ(row.reference, 2);
  EXPECT_EQ(row.sum, std::exp2(-0.5) + std::exp2(-1.5));
  const RowSummary with_sink = summarise(std::vector<double>{1.5, -infinity}, 2.5);
  EXPECT_EQ(with_sink.reference, 3);
  EXPECT_EQ(with_sink.sum, std::exp2(-1.5) + std::exp2(-0.5));
  EXPECT_EQ(summarise(std::vector<double>{-infinity}, 2.5).reference, -infinity);  // a sink alone is nothing to see
  EXPECT_EQ(summarise(std::vector<double>{-infinity}, -infinity).reference, -infinity);
  EXPECT_EQ(summarise(std::vector<double>{-infinity}, -infinity).sum, 0);
  EXPECT_EQ(summarise(std::vector<double>{}, -infinity).reference, -infinity);
  for (double odd : {std::nan(""), infinity}) {
    EXPECT_EQ(summarise(std::vector<double>{1, odd}, -infinity).reference, 0);
    EXPECT_TRUE(std::isnan(summarise(std::vector<double>{1, odd}, -infinity).sum));
  }
}

// Whether end to end takes this recorded value for a row whose only score, in truth, is score.
bool taken(Stage stage, double score, float recorded) {
  const std::vector<double> scores = {score};
  const RowSummary row = summarise(scores, -std::numeric_limits<double>::infinity());
  const double right = settled(double{recorded}, stage,
                               {scores, -std::numeric_limits<double>::infinity(), drift_share() * std::abs(score)});
  StageCheck check{.stage = stage};
  note_difference(check, double{recorded}, right, stage == Stage::row_sum ? drift_bound(row.sum) : 0.0);
  return check.worst_share <= 1;
}

TEST(Drift, ALargestScoreNextToAWholeNumberMayGiveEitherReference) {
  EXPECT_TRUE(taken(Stage::row_reference, 3.0001, 4));
  EXPECT_TRUE(taken(Stage::row_reference, 3.0001, 3));
  EXPECT_TRUE(taken(Stage::row_reference, 2.9999, 4));
  EXPECT_FALSE(taken(Stage::row_reference, 3.0001, 2));
  EXPECT_FALSE(taken(Stage::row_reference, 3.0001, 5));
  EXPECT_FALSE(taken(Stage::row_reference, 3.01, 3));
  EXPECT_FALSE(taken(Stage::row_reference, 3.0001, 3.5f));
}

TEST(Drift, TheSumGoesWithTheReference) {
  EXPECT_TRUE(taken(Stage::row_sum, 3.0001, 0.50003f));
  EXPECT_TRUE(taken(Stage::row_sum, 3.0001, 1.00006f));
  EXPECT_FALSE(taken(Stage::row_sum, 3.0001, 0.25f));
  EXPECT_FALSE(taken(Stage::row_sum, 3.01, 1.007f));
  EXPECT_FALSE(taken(Stage::row_sum, 3.0001, 0.75f));
}

}  // namespace
}  // namespace clearhead::engine
