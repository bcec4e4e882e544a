// SPDX-License-Identifier: Apache-2.0
#include "clearhead/linear/packed_linear.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "tests/support/error_text.h"
#include "tests/support/hashed_values.h"

namespace clearhead::linear {
namespace {

using tensor::DType;
using tensor::Tensor;
using tensor::TensorView;
using tests::error_text;
using tests::hashed_values;

Tensor tensor_of(tensor::Shape shape, uint64_t seed, DType dtype = DType::f32) {
  Tensor result(shape);
  const auto values = hashed_values(seed, result.elements());
  std::copy(values.begin(), values.end(), result.as<float>().begin());
  return tensor::to_dtype(result, dtype);
}

TEST(PackedLinear, KeepsEveryParameterOfEveryTypeAndAlignment) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    for (size_t in : {1, 5, 64, 130}) {
      for (size_t out : {1, 16, 17, 70}) {
        const Tensor weight = tensor_of({out, in}, 1, dtype), bias = tensor_of({out}, 2, dtype);
        const Tensor floats = tensor::to_dtype(weight, DType::f32), bias_floats = tensor::to_dtype(bias, DType::f32);
        std::vector<std::byte> file(weight.bytes().size() + 1);  // one byte off any alignment
        std::memcpy(file.data() + 1, weight.bytes().data(), weight.bytes().size());
        const PackedLinear packed(TensorView(dtype, {out, in}, std::span(file).subspan(1)), bias.view());
        ASSERT_EQ(packed.in_features(), in);
        ASSERT_EQ(packed.out_features(), out);
        for (size_t j = 0; j < out; ++j) {
          for (size_t k = 0; k < in; ++k) ASSERT_EQ(packed.weight_at(j, k), floats.as<float>()[j * in + k]);
          ASSERT_EQ(packed.bias_at(j), bias_floats.as<float>()[j]);
        }
      }
    }
  }
}

TEST(PackedLinear, FillsTheLastPanelWithZeros) {
  const PackedLinear packed(tensor_of({17, 9}, 1));
  ASSERT_EQ(packed.panels().size(), 2u * 9 * 16);
  EXPECT_EQ(packed.bytes(), 2u * 9 * 16 * 4);
  for (size_t k = 0; k < 9; ++k) {
    EXPECT_NE(packed.panels()[(9 + k) * 16], 0.0f);
    for (size_t lane = 1; lane < 16; ++lane)
      EXPECT_EQ(std::bit_cast<uint32_t>(packed.panels()[(9 + k) * 16 + lane]), 0u);
  }
  EXPECT_TRUE(packed.bias().empty());
  EXPECT_EQ(packed.bias_at(16), 0.0f);
}

TEST(PackedLinear, TransposedIsTheOtherWayRound) {
  const Tensor weight = tensor_of({20, 20}, 1);  // square, so that only the numbers can tell
  const PackedLinear plain(weight), transposed(weight, std::nullopt, true);
  for (size_t j = 0; j < 20; ++j) {
    for (size_t k = 0; k < 20; ++k) {
      ASSERT_EQ(plain.weight_at(j, k), weight.as<float>()[j * 20 + k]);
      ASSERT_EQ(transposed.weight_at(j, k), weight.as<float>()[k * 20 + j]);
    }
  }
  const PackedLinear wide(tensor_of({3, 40}, 2), tensor_of({40}, 3).view(), true);
  EXPECT_EQ(wide.in_features(), 3u);
  EXPECT_EQ(wide.out_features(), 40u);
}

TEST(PackedLinear, StackPutsOutputsOneAfterTheOther) {
  const Tensor a = tensor_of({10, 6}, 1), b = tensor_of({6, 21}, 2, DType::bf16), c = tensor_of({3, 6}, 3);
  const Tensor bias = tensor_of({21}, 4);
  const std::vector<LinearParameters> parts = {{a, std::nullopt}, {b, bias.view(), true}, {c, std::nullopt}};
  const PackedLinear all = PackedLinear::stack(parts);
  ASSERT_EQ(all.out_features(), 34u);
  size_t first = 0;
  for (const auto& part : parts) {
    const PackedLinear alone(part.weight, part.bias, part.transposed);
    for (size_t j = 0; j < alone.out_features(); ++j) {
      for (size_t k = 0; k < 6; ++k) ASSERT_EQ(all.weight_at(first + j, k), alone.weight_at(j, k));
      ASSERT_EQ(all.bias_at(first + j), alone.bias_at(j));
    }
    first += alone.out_features();
  }
}

TEST(PackedLinear, RefusesWhatIsNoLinearMap) {
  const Tensor weight = tensor_of({4, 3}, 1), bias = tensor_of({4}, 2), other = tensor_of({4, 2}, 3);
  EXPECT_EQ(error_text([&] { PackedLinear(tensor_of({4}, 1)); }),
            "[linear] expected a weight [out, in], neither 0; found [4]");
  EXPECT_EQ(error_text([&] {
              PackedLinear(Tensor({4, 0}), std::nullopt, true);
            }),
            "[linear] expected a weight [in, out], neither 0; found [4, 0]");
  EXPECT_EQ(error_text([&] {
              PackedLinear(Tensor(DType::i32, {4, 3}));
            }),
            "[linear] expected a weight of type F32, F16, BF16 or F64; found I32");
  EXPECT_EQ(error_text([&] { PackedLinear(weight, Tensor(DType::u8, {4}).view()); }),
            "[linear] expected a bias of type F32, F16, BF16 or F64; found U8");
  EXPECT_EQ(error_text([&] { PackedLinear(weight, bias.view(), true); }), "[linear] expected a bias [3]; found [4]");
  EXPECT_EQ(error_text([&] { PackedLinear::stack({}); }), "[linear] expected at least one part; found none");
  const std::vector<LinearParameters> parts = {{weight, std::nullopt}, {other, std::nullopt}};
  EXPECT_EQ(error_text([&] { PackedLinear::stack(parts); }),
            "[linear] expected parts of 3 inputs like the first; found a part of 2");
}

}  // namespace
}  // namespace clearhead::linear
