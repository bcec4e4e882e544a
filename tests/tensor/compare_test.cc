// SPDX-License-Identifier: Apache-2.0
#include "clearhead/tensor/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "tests/support/error_text.h"

namespace clearhead::tensor {
namespace {

using tests::error_text;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Tensor floats(std::initializer_list<float> values) {
  Tensor tensor(Shape{values.size()});
  std::ranges::copy(values, tensor.as<float>().begin());
  return tensor;
}

TEST(UlpDistance, CountsStepsBetweenNeighbours) {
  EXPECT_EQ(ulp_distance(1.0f, 1.0f), 0u);
  EXPECT_EQ(ulp_distance(1.0f, std::nextafter(1.0f, 2.0f)), 1u);
  EXPECT_EQ(ulp_distance(std::nextafter(1.0f, 0.0f), std::nextafter(1.0f, 2.0f)), 2u);
  EXPECT_EQ(ulp_distance(-1.0f, -2.0f), uint64_t{1} << 23);
  EXPECT_EQ(ulp_distance(0.0f, -0.0f), 0u);
  EXPECT_EQ(ulp_distance(0x1p-149f, -0x1p-149f), 2u) << "across zero";
  EXPECT_EQ(ulp_distance(std::numeric_limits<float>::max(), kInfinity), 1u);
  EXPECT_EQ(ulp_distance(-kInfinity, kInfinity), uint64_t{0x7f800000} * 2);
}

TEST(UlpDistance, NaN) {
  EXPECT_EQ(ulp_distance(kNaN, -kNaN), 0u);
  EXPECT_EQ(ulp_distance(kNaN, 1.0f), UINT64_MAX);
  EXPECT_EQ(ulp_distance(kInfinity, kNaN), UINT64_MAX);
}

TEST(Compare, FindsTheLargestAndItsPlace) {
  const Difference found = compare(floats({1, 10, -3, 0}), floats({1, 8, -2, 0}));
  EXPECT_EQ(found.max_abs, 2.0);
  EXPECT_EQ(found.at, 1u);
  EXPECT_EQ(found.max_relative, 0.5) << "of another element than the largest absolute difference";
  EXPECT_EQ(found.max_ulp, ulp_distance(-3, -2));
}

TEST(Compare, NoDifference) {
  const Difference found =
      compare(floats({0.0f, kInfinity, kNaN, -kInfinity}), floats({-0.0f, kInfinity, kNaN, -kInfinity}));
  EXPECT_EQ(found.max_abs, 0.0);
  EXPECT_EQ(found.max_relative, 0.0);
  EXPECT_EQ(found.max_ulp, 0u);
  EXPECT_EQ(compare(floats({}), floats({})).max_abs, 0.0);
}

TEST(Compare, NaNAndInfinityAreInfinitelyFarInEveryFigure) {
  const struct {
    float a, b;
  } pairs[] = {{kNaN, 1}, {1, kNaN}, {kNaN, kInfinity}, {1, kInfinity}, {kInfinity, 1}, {kInfinity, -kInfinity},
               {kNaN, 0}};
  for (const auto& pair : pairs) {
    const Difference found = compare(floats({5, pair.a, 6}), floats({5, pair.b, 6.5f}));
    EXPECT_EQ(found.max_abs, double(kInfinity)) << pair.a << " " << pair.b;
    EXPECT_EQ(found.max_relative, double(kInfinity)) << pair.a << " " << pair.b;
    EXPECT_EQ(found.at, 1u) << pair.a << " " << pair.b;
  }
}

TEST(Compare, AgainstZeroIsInfinitelyFarRelatively) {
  const Difference found = compare(floats({0.25f}), floats({0}));
  EXPECT_EQ(found.max_abs, 0.25);
  EXPECT_EQ(found.max_relative, double(kInfinity));
}

TEST(Compare, AcrossTypes) {
  const Tensor halfs = to_dtype(floats({1, 2}), DType::f16);
  const Difference found = compare(halfs, floats({1, 2.5f}));
  EXPECT_EQ(found.max_abs, 0.5);
  EXPECT_EQ(found.max_ulp, 0u) << "steps only between floats";
}

TEST(Compare, ShapesMustAgree) {
  EXPECT_EQ(error_text([] {
              compare(Tensor(Shape{6}), Tensor(Shape{2, 3}));
            }),
            "[compare] expected shape [2, 3]; found [6]");
}

TEST(SameBits, SeesWhatNumbersHide) {
  EXPECT_TRUE(same_bits(floats({1, kNaN}), floats({1, kNaN})));
  EXPECT_FALSE(same_bits(floats({0.0f}), floats({-0.0f})));
  EXPECT_FALSE(same_bits(Tensor(Shape{6}), Tensor(Shape{2, 3})));
  EXPECT_FALSE(same_bits(Tensor(DType::f32, {2}), Tensor(DType::i32, {2})));
}

}  // namespace
}  // namespace clearhead::tensor
