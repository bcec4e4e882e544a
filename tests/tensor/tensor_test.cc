// SPDX-License-Identifier: Apache-2.0
#include "clearhead/tensor/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "tests/support/error_text.h"

namespace clearhead::tensor {
namespace {

using tests::error_text;

template <class T>
Tensor tensor_of(std::initializer_list<T> values) {
  Tensor tensor(dtype_for<T>(), Shape{values.size()});
  std::ranges::copy(values, tensor.as<T>().begin());
  return tensor;
}

template <class T>
std::vector<T> values_of(const Tensor& tensor) {
  const auto values = tensor.as<T>();
  return {values.begin(), values.end()};
}

TEST(Tensor, IsZeroAndAligned) {
  const Tensor tensor(DType::f64, {3, 5});
  EXPECT_EQ(tensor.elements(), 15u);
  EXPECT_EQ(tensor.bytes().size(), 120u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes().data()) % 64, 0u);
  for (double value : tensor.as<double>()) EXPECT_EQ(value, 0.0);
}

TEST(Tensor, DefaultIsEmpty) {
  EXPECT_EQ(Tensor().elements(), 0u);
  EXPECT_EQ(TensorView().elements(), 0u);
  EXPECT_TRUE(Tensor().as<float>().empty());
}

TEST(Tensor, AScalarHasOneElement) { EXPECT_EQ(Tensor(Shape{}).elements(), 1u); }

TEST(Tensor, OnlyItsOwnType) {
  Tensor tensor(DType::i64, {2});
  EXPECT_EQ(error_text([&] { (void)tensor.as<float>(); }), "[tensor] expected F32; found I64");
  EXPECT_EQ(error_text([&] { (void)tensor.view().as<Half>(); }), "[tensor view] expected F16; found I64");
}

TEST(Tensor, SizesThatDoNotFitAreRefused) {
  EXPECT_EQ(error_text([] { Tensor tensor(DType::f32, {size_t{1} << 62}); }),
            "[tensor] expected a size that fits 64 bits; found [4611686018427387904]");
  EXPECT_EQ(error_text([] {
              TensorView view(DType::u8, {SIZE_MAX, 2}, {});
            }),
            "[tensor] expected a size that fits 64 bits; found [18446744073709551615, 2]");
}

TEST(Tensor, ReshapeKeepsElements) {
  Tensor tensor = tensor_of<int32_t>({1, 2, 3, 4, 5, 6});
  const std::byte* place = tensor.bytes().data();
  const Tensor matrix = std::move(tensor).reshaped({2, 3});
  EXPECT_EQ(matrix.shape(), Shape({2, 3}));
  EXPECT_EQ(matrix.bytes().data(), place);
  EXPECT_EQ(values_of<int32_t>(matrix), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Tensor, ReshapeToAnotherCountIsRefused) {
  EXPECT_EQ(error_text([] { (void)Tensor(Shape{6}).reshaped({4}); }),
            "[tensor] expected a shape of 6 elements; found [4]");
  EXPECT_EQ(error_text([] {
              (void)Tensor(Shape{0}).reshaped({size_t{1} << 32, size_t{1} << 32});
            }),
            "[tensor] expected a shape of 0 elements; found [4294967296, 4294967296]");
}

TEST(TensorView, NeedsExactlyItsBytes) {
  const std::array<std::byte, 25> bytes{};
  EXPECT_EQ(TensorView(DType::f32, {2, 3}, std::span(bytes).first(24)).elements(), 6u);
  EXPECT_EQ(error_text([&] {
              TensorView view(DType::f32, {2, 3}, bytes);
            }),
            "[tensor view] expected 24 bytes for F32 [2, 3]; found 25 bytes");
  EXPECT_EQ(error_text([&] { TensorView view(DType::bool_, {26}, bytes); }),
            "[tensor view] expected 26 bytes for BOOL [26]; found 25 bytes");
}

TEST(TensorView, UnalignedElementsAreCopiedNotRead) {
  alignas(8) std::array<std::byte, 13> bytes{};
  const float values[] = {1.5f, -2.5f, 3.5f};
  std::memcpy(bytes.data() + 1, values, sizeof values);
  const TensorView view(DType::f32, {3}, std::span(bytes).subspan(1));
  EXPECT_EQ(error_text([&] { (void)view.as<float>(); }),
            "[tensor view] expected elements aligned to 4 bytes; found unaligned bytes; copy them first");
  EXPECT_EQ(values_of<float>(clone(view)), (std::vector<float>{1.5f, -2.5f, 3.5f}));
  EXPECT_EQ(values_of<double>(to_dtype(view, DType::f64)), (std::vector<double>{1.5, -2.5, 3.5}));
  std::vector<float> copied(3);
  copy_to_float(view, copied);
  EXPECT_EQ(copied, (std::vector<float>{1.5f, -2.5f, 3.5f}));
}

TEST(Clone, IsIndependent) {
  const Tensor original = tensor_of<float>({1, 2});
  Tensor copy = clone(original);
  copy.as<float>()[0] = 9;
  EXPECT_EQ(values_of<float>(original), (std::vector<float>{1, 2}));
  EXPECT_EQ(clone(Tensor(DType::u8, {4, 0})).shape(), Shape({4, 0}));
}

TEST(ToDType, FloatingTypesFromEachOther) {
  const Tensor doubles = tensor_of<double>({1.0, -0.5, 65504.0});
  for (DType middle : {DType::f32, DType::f16, DType::f64}) {
    const Tensor there = to_dtype(doubles, middle);
    EXPECT_EQ(there.dtype(), middle);
    EXPECT_EQ(there.shape(), doubles.shape());
    EXPECT_EQ(values_of<double>(to_dtype(there, DType::f64)), values_of<double>(doubles)) << name_of(middle);
  }
  EXPECT_EQ(values_of<float>(to_dtype(to_dtype(doubles, DType::bf16), DType::f32))[2], 65536.0f);
}

// Through a float these would be rounded twice, and to the wrong neighbour.
TEST(ToDType, DoubleIsRoundedOnce) {
  const Tensor halfs =
      to_dtype(tensor_of<double>({1 + 0x1p-11 + 0x1p-40, -1 - 0x1p-11 - 0x1p-40, 1 + 0x1p-11, 1 + 0x1p-11 - 0x1p-40,
                                  65520 - 0x1p-20, 0x1p-25 + 0x1p-70, 1e300, -1e-300}),
               DType::f16);
  const uint16_t expected[] = {0x3c01, 0xbc01, 0x3c00, 0x3c00, 0x7bff, 0x0001, 0x7c00, 0x8000};
  for (size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(halfs.as<Half>()[i].bits, expected[i]) << i;
  const Tensor bfloats = to_dtype(tensor_of<double>({1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-8, 1e300}), DType::bf16);
  EXPECT_EQ(bfloats.as<BFloat16>()[0].bits, 0x3f81);
  EXPECT_EQ(bfloats.as<BFloat16>()[1].bits, 0x3f80);
  EXPECT_EQ(bfloats.as<BFloat16>()[2].bits, 0x7f80);
}

TEST(ToDType, IntegersAreRoundedOnce) {
  const int64_t above_half_way = (int64_t{1} << 62) + (int64_t{1} << 54) + 1;
  EXPECT_EQ(to_dtype(tensor_of<int64_t>({above_half_way}), DType::bf16).as<BFloat16>()[0].bits, 0x5e81);
  EXPECT_EQ(to_dtype(tensor_of<int32_t>({(1 << 30) + (1 << 22) + 1}), DType::bf16).as<BFloat16>()[0].bits, 0x4e81);
  EXPECT_EQ(to_dtype(tensor_of<int64_t>({65519, -65520}), DType::f16).as<Half>()[0].bits, 0x7bff);
}

TEST(ToDType, SpecialValuesSurvive) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor doubles = tensor_of<double>({infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), -0.0});
  for (DType middle : {DType::f32, DType::f16, DType::bf16}) {
    const Tensor back = to_dtype(to_dtype(doubles, middle), DType::f64);
    EXPECT_EQ(back.as<double>()[0], infinity) << name_of(middle);
    EXPECT_EQ(back.as<double>()[1], -infinity) << name_of(middle);
    EXPECT_TRUE(std::isnan(back.as<double>()[2])) << name_of(middle);
    EXPECT_TRUE(std::signbit(back.as<double>()[3])) << name_of(middle);
  }
}

TEST(ToDType, IntegersAndBoolsWiden) {
  EXPECT_EQ(values_of<int64_t>(to_dtype(tensor_of<int32_t>({-1, 7}), DType::i64)), (std::vector<int64_t>{-1, 7}));
  EXPECT_EQ(values_of<int32_t>(to_dtype(tensor_of<uint8_t>({0, 255}), DType::i32)), (std::vector<int32_t>{0, 255}));
  EXPECT_EQ(values_of<float>(to_dtype(tensor_of<bool>({true, false}), DType::f32)), (std::vector<float>{1, 0}));
  EXPECT_EQ(values_of<int64_t>(to_dtype(tensor_of<bool>({true, false}), DType::i64)), (std::vector<int64_t>{1, 0}));
}

// A file may hold any byte where a bool is expected; only 0 and 1 are bools.
TEST(ToDType, AnyByteButZeroIsTrue) {
  const std::array<std::byte, 3> bytes{std::byte{0}, std::byte{1}, std::byte{0xfe}};
  const TensorView view(DType::bool_, {3}, bytes);
  EXPECT_EQ(values_of<float>(to_dtype(view, DType::f32)), (std::vector<float>{0, 1, 1}));
  const Tensor copy = to_dtype(view, DType::bool_);
  EXPECT_EQ(std::to_integer<int>(copy.bytes()[2]), 1);
}

TEST(ToDType, WhatWouldLoseIsRefused) {
  const struct {
    DType from, to;
  } pairs[] = {{DType::f32, DType::i64},  {DType::f64, DType::bool_}, {DType::i64, DType::i32}, {DType::i32, DType::u8},
               {DType::u8, DType::bool_}, {DType::bool_, DType::u8},  {DType::bf16, DType::u8}};
  for (const auto& pair : pairs) {
    EXPECT_EQ(error_text([&] { (void)to_dtype(Tensor(pair.from, {1}), pair.to); }),
              "[tensor] expected a type that can become " + std::string(name_of(pair.to)) + "; found " +
                  std::string(name_of(pair.from)));
  }
}

TEST(CopyToFloat, NeedsTheRightRoom) {
  std::vector<float> room(3);
  EXPECT_EQ(error_text([&] { copy_to_float(Tensor(DType::f16, {2}), room); }),
            "[tensor] expected room for 2 elements; found 3");
}

}  // namespace
}  // namespace clearhead::tensor
