// SPDX-License-Identifier: Apache-2.0
#include "clearhead/tensor/shape.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/error_text.h"

namespace clearhead::tensor {
namespace {

using tests::error_text;

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape().elements(), 1u) << "a scalar";
  EXPECT_EQ(Shape({6}).elements(), 6u);
  EXPECT_EQ(Shape({6, 8, 64}).elements(), 3072u);
  EXPECT_EQ(Shape({6, 0, 64}).elements(), 0u);
}

TEST(Shape, NamesItsAxes) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.rank(), 3u);
  EXPECT_EQ(shape[0], 2u);
  EXPECT_EQ(shape[2], 4u);
  EXPECT_EQ(shape.sizes().size(), 3u);
}

TEST(Shape, Text) {
  EXPECT_EQ(Shape().text(), "[]");
  EXPECT_EQ(Shape({7}).text(), "[7]");
  EXPECT_EQ(Shape({6, 8, 64}).text(), "[6, 8, 64]");
}

TEST(Shape, Equality) {
  EXPECT_EQ(Shape({2, 3}), Shape(std::vector<size_t>{2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape({6}), Shape({6, 1}));
}

TEST(Shape, OverflowIsNotACount) {
  const Shape huge{size_t{1} << 32, size_t{1} << 32};
  EXPECT_EQ(huge.checked_elements(), std::nullopt);
  EXPECT_EQ(error_text([&] { (void)huge.elements(); }),
            "[shape] expected a number of elements that fits 64 bits; found [4294967296, 4294967296]");
  EXPECT_EQ(Shape({SIZE_MAX, SIZE_MAX, 0}).elements(), 0u) << "empty, however large the other axes";
}

}  // namespace
}  // namespace clearhead::tensor
