// SPDX-License-Identifier: Apache-2.0
#include "clearhead/tensor/dtype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace clearhead::tensor {
namespace {

// A small floating format: sign, exponent_bits, fraction_bits; IEEE 754 layout.
struct Format {
  int exponent_bits, fraction_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint16_t infinity() const { return uint16_t(((1 << exponent_bits) - 1) << fraction_bits); }
};

constexpr Format kHalf{5, 10}, kBFloat16{8, 7};

// The definition: what the bits of a finite value or infinity mean.
double value_of(Format format, uint16_t bits) {
  const int exponent = (bits & 0x7fff) >> format.fraction_bits, fraction = bits & ((1 << format.fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << format.exponent_bits) - 1) return sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - format.bias() - format.fraction_bits);
  return sign * std::ldexp((1 << format.fraction_bits) + fraction, exponent - format.bias() - format.fraction_bits);
}

bool is_nan(Format format, uint16_t bits) { return (bits & 0x7fff) > format.infinity(); }

// The definition of rounding: of all values (in place of infinity the next power of two) the nearest, of two the one
// whose last bit is 0.
uint16_t round_by_definition(Format format, float value) {
  static const auto table = [](Format of) {
    std::vector<double> values;
    for (uint16_t bits = 0; bits < of.infinity(); ++bits) values.push_back(value_of(of, bits));
    values.push_back(std::ldexp(1.0, of.bias() + 1));
    return values;
  };
  static const std::vector<double> halfs = table(kHalf), bfloats = table(kBFloat16);
  const std::vector<double>& values = format.fraction_bits == 10 ? halfs : bfloats;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(double(value));
  const auto above = std::ranges::lower_bound(values, magnitude);
  if (above == values.end()) return sign | format.infinity();
  const auto up = uint16_t(above - values.begin());
  if (*above == magnitude) return sign | up;
  const uint16_t down = up - 1;
  const double to_up = *above - magnitude, to_down = magnitude - values[down];
  if (to_up != to_down) return sign | (to_up < to_down ? up : down);
  return sign | ((up & 1) == 0 ? up : down);
}

// Every float near a value or a midpoint of the format, and a coarse sweep of all bit patterns.
template <class Check>
void for_each_telling_float(Format format, Check check) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if (is_nan(format, uint16_t(bits))) continue;
    const double here = value_of(format, uint16_t(bits)), next = value_of(format, uint16_t(bits + 1));
    for (double centre : {here, (here + next) / 2}) {
      const auto middle = float(centre);
      check(middle);
      check(std::nextafter(middle, std::numeric_limits<float>::infinity()));
      check(std::nextafter(middle, -std::numeric_limits<float>::infinity()));
    }
  }
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099) check(std::bit_cast<float>(uint32_t(bits)));
}

TEST(DType, TableOfNamesAndSizes) {
  const struct {
    DType dtype;
    std::string_view name;
    size_t size;
    bool floating;
  } rows[] = {{DType::f32, "F32", 4, true}, {DType::f16, "F16", 2, true},    {DType::bf16, "BF16", 2, true},
              {DType::f64, "F64", 8, true}, {DType::i64, "I64", 8, false},   {DType::i32, "I32", 4, false},
              {DType::u8, "U8", 1, false},  {DType::bool_, "BOOL", 1, false}};
  for (const auto& row : rows) {
    EXPECT_EQ(name_of(row.dtype), row.name);
    EXPECT_EQ(dtype_of(row.name), row.dtype);
    EXPECT_EQ(size_of(row.dtype), row.size);
    EXPECT_EQ(is_floating(row.dtype), row.floating);
  }
  for (const char* name : {"", "f32", "F8_E4M3", "F32 ", "I8"}) EXPECT_EQ(dtype_of(name), std::nullopt) << name;
}

TEST(DType, OfCxxTypes) {
  EXPECT_EQ(dtype_for<float>(), DType::f32);
  EXPECT_EQ(dtype_for<Half>(), DType::f16);
  EXPECT_EQ(dtype_for<BFloat16>(), DType::bf16);
  EXPECT_EQ(dtype_for<double>(), DType::f64);
  EXPECT_EQ(dtype_for<int64_t>(), DType::i64);
  EXPECT_EQ(dtype_for<int32_t>(), DType::i32);
  EXPECT_EQ(dtype_for<uint8_t>(), DType::u8);
  EXPECT_EQ(dtype_for<bool>(), DType::bool_);
}

TEST(DType, AllHalfsToFloatAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = to_float(Half{uint16_t(bits)});
    if (is_nan(kHalf, uint16_t(bits))) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_EQ(to_half(value).bits, bits | 0x200) << "a quiet NaN with its payload";
      continue;
    }
    ASSERT_EQ(double(value), value_of(kHalf, uint16_t(bits))) << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
    ASSERT_EQ(to_half(value).bits, bits);
  }
}

TEST(DType, AllBFloat16sToFloatAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = to_float(BFloat16{uint16_t(bits)});
    if (is_nan(kBFloat16, uint16_t(bits))) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_EQ(to_bfloat16(value).bits, bits | 0x40) << "a quiet NaN with its payload";
      continue;
    }
    ASSERT_EQ(double(value), value_of(kBFloat16, uint16_t(bits))) << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
    ASSERT_EQ(to_bfloat16(value).bits, bits);
  }
}

TEST(DType, FloatToHalfIsRoundedToNearestEven) {
  for_each_telling_float(kHalf, [](float value) {
    if (std::isnan(value)) {
      ASSERT_TRUE(is_nan(kHalf, to_half(value).bits));
    } else {
      ASSERT_EQ(to_half(value).bits, round_by_definition(kHalf, value)) << std::hexfloat << value;
    }
  });
}

TEST(DType, FloatToBFloat16IsRoundedToNearestEven) {
  for_each_telling_float(kBFloat16, [](float value) {
    if (std::isnan(value)) {
      ASSERT_TRUE(is_nan(kBFloat16, to_bfloat16(value).bits));
    } else {
      ASSERT_EQ(to_bfloat16(value).bits, round_by_definition(kBFloat16, value)) << std::hexfloat << value;
    }
  });
}

TEST(DType, EdgesOfHalf) {
  EXPECT_EQ(to_half(65504.0f).bits, 0x7bff) << "the largest";
  EXPECT_EQ(to_half(std::nextafter(65520.0f, 0.0f)).bits, 0x7bff);
  EXPECT_EQ(to_half(65520.0f).bits, 0x7c00) << "the midpoint goes to infinity";
  EXPECT_EQ(to_half(-1e30f).bits, 0xfc00);
  EXPECT_EQ(to_half(0x1p-24f).bits, 0x0001) << "the smallest";
  EXPECT_EQ(to_half(0x1p-25f).bits, 0x0000) << "the midpoint goes to zero";
  EXPECT_EQ(to_half(std::nextafter(0x1p-25f, 1.0f)).bits, 0x0001);
  EXPECT_EQ(to_half(-0.0f).bits, 0x8000);
}

}  // namespace
}  // namespace clearhead::tensor
