// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/widen.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/kernels/values.h"
#include "tests/support/targets.h"

namespace clearhead::kernels {
namespace {

std::vector<uint16_t> every_pattern() {
  std::vector<uint16_t> bits(0x10000);
  std::iota(bits.begin(), bits.end(), uint16_t{0});
  return bits;
}

// The definition: sign (1 + fraction / 2^10) 2^(exponent - 15), or fraction 2^-24.
float half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  const float size = exponent == 31  ? (fraction == 0 ? tests::kInf : tests::kNaN)
                     : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                     : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

void expect_all(const std::vector<float>& found, const std::vector<float>& want) {
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      ASSERT_TRUE(std::isnan(found[i])) << i;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(found[i]), std::bit_cast<uint32_t>(want[i])) << i;
    }
  }
}

TEST(Widen, IsExactForEveryPatternOnEveryTarget) {
  tests::for_each_target([](const std::string&) {
    const std::vector<uint16_t> bits = every_pattern();
    std::vector<float> found(bits.size()), halves, uppers;
    for (uint16_t pattern : bits) {
      halves.push_back(half(pattern));
      uppers.push_back(std::bit_cast<float>(uint32_t{pattern} << 16));
    }
    widen_halves(bits, found.data());
    expect_all(found, halves);
    widen_bfloat16(bits, found.data());
    expect_all(found, uppers);
  });
}

TEST(Widen, WritesNoMoreThanItReadsOnEveryTarget) {
  tests::for_each_target([](const std::string&) {
    const std::vector<uint16_t> bits(40, 0x3c00);
    for (size_t count = 0; count <= 40; ++count) {
      std::vector<float> found(41, 7.0f), want(41, 7.0f);
      std::fill_n(want.begin(), count, 1.0f);
      widen_halves(std::span(bits).first(count), found.data());
      EXPECT_EQ(found, want);
    }
  });
}

}  // namespace
}  // namespace clearhead::kernels
