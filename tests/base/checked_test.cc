// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/checked.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace clearhead::base {
namespace {

TEST(Checked, AddStopsAtTheEdge) {
  EXPECT_EQ(checked_add(2, 3), 5u);
  EXPECT_EQ(checked_add(SIZE_MAX, 0), SIZE_MAX);
  EXPECT_EQ(checked_add(SIZE_MAX - 1, 1), SIZE_MAX);
  EXPECT_EQ(checked_add(SIZE_MAX, 1), std::nullopt);
  EXPECT_EQ(checked_add(SIZE_MAX, SIZE_MAX), std::nullopt);
}

TEST(Checked, MultiplyStopsAtTheEdge) {
  EXPECT_EQ(checked_multiply(6, 7), 42u);
  EXPECT_EQ(checked_multiply(SIZE_MAX, 0), 0u);
  EXPECT_EQ(checked_multiply(SIZE_MAX, 1), SIZE_MAX);
  EXPECT_EQ(checked_multiply(size_t{1} << 32, (size_t{1} << 32) - 1), SIZE_MAX - (size_t{1} << 32) + 1);
  EXPECT_EQ(checked_multiply(size_t{1} << 32, size_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_multiply(SIZE_MAX / 3 + 1, 3), std::nullopt);
}

TEST(Checked, ProductOfNoneIsOne) { EXPECT_EQ(checked_product({}), 1u); }

TEST(Checked, ProductCountsAllFactors) {
  EXPECT_EQ(checked_product(std::array<size_t, 3>{2, 3, 7}), 42u);
  EXPECT_EQ(checked_product(std::array<size_t, 3>{SIZE_MAX, 2, 1}), std::nullopt);
}

TEST(Checked, AZeroAnywhereMakesTheProductZero) {
  EXPECT_EQ(checked_product(std::array<size_t, 3>{SIZE_MAX, SIZE_MAX, 0}), 0u);
  EXPECT_EQ(checked_product(std::array<size_t, 3>{0, SIZE_MAX, SIZE_MAX}), 0u);
}

}  // namespace
}  // namespace clearhead::base
