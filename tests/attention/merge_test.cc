// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/merge.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/hashed_values.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using attention::finish;
using attention::kNothingSeen;
using attention::merge;
using kernels::RowSummary;

TEST(Merge, IsTheFormulaWithFactorsThatArePowersOfTwo) {
  for_each_target([](const std::string&) {
    for (size_t dim = 1; dim <= 40; ++dim) {
      for (float step : {-130.0f, -126.0f, -3.0f, 0.0f, 2.0f, 127.0f}) {
        const std::vector<float> old = hashed_values(1, dim), added = hashed_values(2, dim);
        std::vector<float> output = old;
        RowSummary row{5, 1.25f};
        merge(row, output, {5 + step, 3.5f}, added);
        const double kept = step > 126 ? 0 : std::exp2(std::fmin(0.0, -step));
        const double taken = step < -126 ? 0 : std::exp2(std::fmin(0.0, step));
        EXPECT_EQ(row.reference, std::fmax(5.0f, 5 + step));
        EXPECT_EQ(row.sum, static_cast<float>(1.25 * kept + 3.5 * taken));
        for (size_t i = 0; i < dim; ++i) ASSERT_NEAR(output[i], old[i] * kept + added[i] * taken, 0x1p-24) << step;
      }
    }
  });
}

TEST(Merge, CopiesTheFirstTileAndSkipsTilesThatSawNothing) {
  const std::vector<float> garbage(3, std::numeric_limits<float>::quiet_NaN()), values = {1, -2, 3};
  std::vector<float> output = garbage;
  RowSummary row = kNothingSeen;
  merge(row, output, kNothingSeen, garbage);
  EXPECT_FALSE(attention::has_seen(row));
  merge(row, output, {-7, 0.5f}, values);
  EXPECT_EQ(output, values);
  merge(row, output, kNothingSeen, garbage);
  EXPECT_EQ(output, values);
  EXPECT_EQ(row.reference, -7);
  EXPECT_EQ(row.sum, 0.5f);
}

TEST(Merge, FinishDividesByTheSumAndLeavesZerosWhereNothingWasSeen) {
  std::vector<float> output = {2, -6};
  RowSummary row{3, 4};
  finish(row, output);
  EXPECT_EQ(output, (std::vector<float>{0.5f, -1.5f}));
  row = kNothingSeen;
  finish(row, output);
  EXPECT_EQ(output, (std::vector<float>{0, 0}));
  EXPECT_EQ(row.sum, 0);
}

TEST(Merge, KeepsNaNAndGivesItOneForm) {
  const float odd_nan = std::bit_cast<float>(0xffc12345u);
  std::vector<float> output = {1, odd_nan};
  RowSummary row{0, odd_nan};
  merge(row, output, {2, 1}, std::vector<float>{1, 1});
  finish(row, output);
  EXPECT_EQ(std::bit_cast<uint32_t>(row.sum), 0x7fc00000u);
  for (float value : output) EXPECT_EQ(std::bit_cast<uint32_t>(value), 0x7fc00000u);
}

}  // namespace
}  // namespace clearhead::tests
