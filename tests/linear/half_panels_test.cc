// SPDX-License-Identifier: Apache-2.0
#include "clearhead/linear/half_panels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "clearhead/base/parallel.h"
#include "clearhead/kernels/bfloat16_tile.h"
#include "clearhead/linear/linear.h"
#include "tests/support/hashed_values.h"
#include "tests/support/targets.h"

namespace clearhead::linear {
namespace {

using tensor::DType;
using tensor::TensorView;

// The same map in 16 bits and in floats.
struct Twins {
  PackedLinear narrow, floats;

  Twins(DType dtype, size_t outputs, size_t inputs, bool transposed = false) {
    std::vector<uint16_t> bits;
    std::vector<float> values;
    for (size_t i = 0; i < outputs * inputs; ++i) {
      // Every size of number, subnormals of the type too.
      const float value = tests::hashed_value(21, i) * std::ldexp(1.0f, -static_cast<int>(i % 26));
      bits.push_back(dtype == DType::bf16 ? tensor::to_bfloat16(value).bits : tensor::to_half(value).bits);
      values.push_back(dtype == DType::bf16 ? tensor::to_float(tensor::BFloat16{bits.back()})
                                            : tensor::to_float(tensor::Half{bits.back()}));
    }
    const tensor::Shape shape = transposed ? tensor::Shape{inputs, outputs} : tensor::Shape{outputs, inputs};
    narrow = PackedLinear(TensorView(dtype, shape, std::as_bytes(std::span(bits))), std::nullopt, transposed);
    floats = PackedLinear(TensorView(DType::f32, shape, std::as_bytes(std::span(values))), std::nullopt, transposed);
  }
};

std::vector<float> run(const PackedLinear& parameters, std::span<const float> input) {
  const size_t rows = input.size() / parameters.in_features();
  std::vector<float> output(rows * parameters.out_features(), 7.0f);
  linear(input, rows, parameters, output, {.activation = Activation::gelu, .residual = nullptr});
  return output;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

TEST(HalfPanels, AProductHasTheBitsOfTheSameProductInFloats) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const size_t outputs : {1, 16, 70, 200}) {
      const Twins twins(dtype, outputs, 77, outputs == 70);
      EXPECT_FALSE(twins.narrow.halves().empty());
      tests::for_each_target([&](const std::string&) {
        for (const size_t rows : {1, 2, 3, 7, 97, 300}) {
          const std::vector<float> input = tests::hashed_values(22 + rows, rows * 77);
          EXPECT_TRUE(same_bits(run(twins.narrow, input), run(twins.floats, input)))
              << tensor::name_of(dtype) << " " << outputs << " " << rows;
        }
      });
    }
  }
}

// What a product in bfloat16 is: both sides rounded to pairs, and the sums of kernels::pair_product.
std::vector<float> in_pairs(const PackedLinear& parameters, std::span<const float> input) {
  const size_t in = parameters.in_features(), out = parameters.out_features(), rows = input.size() / in;
  const size_t pairs = kernels::pair_count(in), panels = kernels::panel_count(out);
  std::vector<float> weight(in * panels * 16), output(rows * panels * 16), cut;
  for (size_t k = 0; k < in; ++k) {
    for (size_t i = 0; i < out; ++i) weight[k * panels * 16 + i] = parameters.weight_at(i, k);
  }
  std::vector<kernels::Pair> left(rows * pairs), right(panels * pairs * 16);
  kernels::round_to_pairs(input.data(), in, rows, in, left.data(), pairs);
  kernels::pack_columns_to_pairs(weight.data(), panels * 16, in, panels * 16, right);
  kernels::pair_product({.left = left.data(),
                         .left_stride = pairs,
                         .panels = right.data(),
                         .panel_stride = pairs * 16,
                         .output = output.data(),
                         .output_stride = panels * 16,
                         .rows = rows,
                         .pairs = pairs,
                         .num_panels = panels});
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < out; ++i) cut.push_back(output[row * panels * 16 + i]);
  }
  return cut;
}

TEST(Linear, InBfloat16HasTheBitsOfAPairProductForAnyRowsAndThreads) {
  const size_t before = base::num_threads();
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    for (const size_t in : {76, 77}) {
      const Twins twins(dtype == DType::f32 ? DType::f16 : dtype, 70, in);
      const PackedLinear& parameters = dtype == DType::f32 ? twins.floats : twins.narrow;
      const std::vector<float> input = tests::hashed_values(30, 300 * in);
      const std::vector<float> truth = in_pairs(parameters, input);
      for (const size_t rows : {1, 2, 5, 97, 300}) {
        for (const size_t threads : {1, 3}) {
          base::set_num_threads(threads);
          std::vector<float> output(rows * 70);
          linear(std::span(input).first(rows * in), rows, parameters, output, {}, Compute::bfloat16);
          EXPECT_TRUE(same_bits(output, std::span(truth).first(rows * 70)))
              << tensor::name_of(dtype) << " " << in << " " << rows << " " << threads;
        }
      }
    }
  }
  base::set_num_threads(before);
}

TEST(HalfPanels, EachParameterCanBeLookedAt) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Twins twins(dtype, 21, 40);
    std::vector<float> room;
    EXPECT_TRUE(same_bits(twins.narrow.panels_as_floats(room), twins.floats.panels())) << tensor::name_of(dtype);
    for (size_t out = 0; out < 21; ++out) {
      for (size_t in = 0; in < 40; ++in) ASSERT_EQ(twins.narrow.weight_at(out, in), twins.floats.weight_at(out, in));
    }
    EXPECT_EQ(twins.narrow.bytes() * 2, twins.floats.bytes());
  }
}

TEST(HalfPanels, PartsOfTwoTypesBecomeFloats) {
  const std::vector<uint16_t> bits(6 * 4, 0x3c00);
  const std::vector<float> values(2 * 4, 3.0f);
  const LinearParameters parts[] = {{TensorView(DType::f16, {6, 4}, std::as_bytes(std::span(bits))), {}, false},
                                    {TensorView(DType::f32, {2, 4}, std::as_bytes(std::span(values))), {}, false}};
  const PackedLinear mixed = PackedLinear::stack(parts), one = PackedLinear::stack(std::span(parts).first(1));
  EXPECT_TRUE(mixed.halves().empty());
  EXPECT_FALSE(one.halves().empty());
  EXPECT_EQ(mixed.weight_at(5, 3), 1.0f);
  EXPECT_EQ(mixed.weight_at(7, 3), 3.0f);
}

}  // namespace
}  // namespace clearhead::linear
