// SPDX-License-Identifier: Apache-2.0
#include "clearhead/linear/integer_panels.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "clearhead/base/parallel.h"
#include "clearhead/linear/linear.h"
#include "tests/support/hashed_values.h"
#include "tests/support/targets.h"

namespace clearhead::linear {
namespace {

using tensor::BlockType;
using tensor::BlockView;
using tensor::TensorView;

constexpr std::array kTypes = {BlockType::q4_0, BlockType::q4_1, BlockType::q5_0, BlockType::q5_1,
                               BlockType::q8_0, BlockType::q4_k, BlockType::q5_k, BlockType::q6_k};

// Random blocks [rows, columns] whose scales are numbers.
std::vector<std::byte> random_blocks(BlockType type, size_t rows, size_t columns) {
  const size_t size = tensor::block_bytes(type), count = rows * columns / tensor::block_values(type);
  std::vector<std::byte> blocks(count * size);
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = static_cast<std::byte>(static_cast<int>(tests::hashed_value(11, i) * 128) & 255);
  }
  const size_t scale = type == BlockType::q6_k ? 208 : 0;
  const bool two = tensor::split_type(type).has_addend;
  for (size_t block = 0; block < count; ++block) {
    for (size_t place = scale; place <= scale + (two ? 2 : 0); place += 2) {
      const uint16_t half = tensor::to_half(tests::hashed_value(12, 3 * block + place) * 0.1f).bits;
      std::memcpy(blocks.data() + block * size + place, &half, 2);
    }
  }
  return blocks;
}

// The same map in few bits and in floats.
struct Twins {
  std::vector<std::byte> blocks;
  std::vector<float> bias;
  PackedLinear few, floats;

  Twins(BlockType type, size_t outputs, size_t inputs)
      : blocks(random_blocks(type, outputs, inputs)), bias(tests::hashed_values(13, outputs)) {
    const BlockView weight{type, {outputs, inputs}, blocks};
    const auto turned = [=](size_t i) { return outputs - 1 - i; };
    std::vector<float> values(outputs * inputs), turned_bias;
    for (size_t i = 0; i < outputs; ++i) {
      tensor::decode_blocks(type, weight.row(turned(i)), std::span(values).subspan(i * inputs, inputs));
      turned_bias.push_back(bias[turned(i)]);
    }
    const auto view = [](const std::vector<float>& v, tensor::Shape shape) {
      return TensorView(tensor::DType::f32, std::move(shape), std::as_bytes(std::span(v)));
    };
    few = PackedLinear::from_blocks(weight, view(bias, {outputs}), outputs, turned);
    floats = PackedLinear(view(values, {outputs, inputs}), view(turned_bias, {outputs}));
  }
};

std::vector<float> run(const PackedLinear& parameters, std::span<const float> input) {
  const size_t rows = input.size() / parameters.in_features();
  std::vector<float> output(rows * parameters.out_features(), 7.0f);
  linear(input, rows, parameters, output, {.activation = Activation::silu, .residual = nullptr});
  return output;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

TEST(IntegerPanels, AProductHasTheBitsOfTheSameProductInFloats) {
  for (const BlockType type : kTypes) {
    for (const size_t outputs : {1, 16, 70, 200}) {
      const Twins twins(type, outputs, 512);
      tests::for_each_target([&](const std::string&) {
        for (const size_t rows : {1, 2, 3, 7, 100}) {
          const std::vector<float> input = tests::hashed_values(14 + rows, rows * 512);
          EXPECT_TRUE(same_bits(run(twins.few, input), run(twins.floats, input)))
              << tensor::name_of(type) << " " << outputs << " " << rows;
        }
      });
    }
  }
}

TEST(IntegerPanels, InBfloat16TheyAreRoundedAsFloatsAre) {
  for (const BlockType type : kTypes) {
    const Twins twins(type, 70, 512);
    const std::vector<float> input = tests::hashed_values(18, 5 * 512);
    std::vector<float> few(5 * 70), floats(5 * 70);
    linear(input, 5, twins.few, few, {}, Compute::bfloat16);
    linear(input, 5, twins.floats, floats, {}, Compute::bfloat16);
    EXPECT_TRUE(same_bits(few, floats)) << tensor::name_of(type);
  }
}

TEST(IntegerPanels, ATokenAloneHasTheBitsOfTheSameTokenAmongOthers) {
  const Twins twins(BlockType::q4_1, 100, 96);
  const std::vector<float> input = tests::hashed_values(15, 40 * 96);
  const std::vector<float> together = run(twins.few, input);
  for (size_t row = 0; row < 40; ++row) {
    EXPECT_TRUE(
        same_bits(run(twins.few, std::span(input).subspan(row * 96, 96)), std::span(together).subspan(row * 100, 100)));
  }
}

TEST(IntegerPanels, EachParameterCanBeLookedAt) {
  for (const BlockType type : kTypes) {
    const Twins twins(type, 21, 256);
    std::vector<float> room;
    const std::span<const float> unpacked = twins.few.panels_as_floats(room);
    EXPECT_TRUE(same_bits(unpacked, twins.floats.panels())) << tensor::name_of(type);
    for (size_t out = 0; out < 21; ++out) {
      for (size_t in = 0; in < 256; ++in) ASSERT_EQ(twins.few.weight_at(out, in), twins.floats.weight_at(out, in));
      EXPECT_EQ(twins.few.bias_at(out), twins.floats.bias_at(out));
    }
    EXPECT_LT(twins.few.bytes(), twins.floats.bytes() / 2);
  }
}

}  // namespace
}  // namespace clearhead::linear
