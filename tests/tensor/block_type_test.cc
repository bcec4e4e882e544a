// SPDX-License-Identifier: Apache-2.0
#include "clearhead/tensor/block_type.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <filesystem>
#include <string>
#include <vector>

#include "clearhead/format/safetensors.h"
#include "clearhead/tensor/compare.h"

namespace clearhead::tensor {
namespace {

constexpr std::array kTypes = {BlockType::q4_0, BlockType::q4_1, BlockType::q5_0, BlockType::q5_1,
                               BlockType::q8_0, BlockType::q4_k, BlockType::q5_k, BlockType::q6_k};
constexpr std::byte kOneLow{0x00}, kOneHigh{0x3c};  // 1 as a half float

std::vector<float> decode(BlockType type, const std::vector<std::byte>& block) {
  std::vector<float> values(block_values(type));
  decode_blocks(type, block, values);
  return values;
}

std::vector<std::byte> zeros(BlockType type) { return std::vector<std::byte>(block_bytes(type)); }

TEST(BlockType, RandomBlocksHaveTheBitsOfTheGgufPackage) {
  const auto file = format::SafetensorsFile::open(std::filesystem::path(CLEARHEAD_TEST_DATA) / "blocks.safetensors");
  for (BlockType type : kTypes) {
    const std::string name(name_of(type));
    const TensorView blocks = file.view(name + ".blocks");
    Tensor values(Shape{blocks.elements() / block_bytes(type) * block_values(type)});
    decode_blocks(type, blocks.bytes(), values.as<float>());
    EXPECT_TRUE(same_bits(values, file.view(name + ".values"))) << name;
    EXPECT_FALSE(first_bad_scale(type, blocks.bytes()).has_value()) << name;
  }
}

TEST(BlockType, TheHalvesOfAByteAreSixteenValuesApart) {
  auto block = zeros(BlockType::q4_0);
  block[1] = kOneHigh;
  block[2] = std::byte{0xf0};
  const auto values = decode(BlockType::q4_0, block);
  EXPECT_EQ(values[0], -8);
  EXPECT_EQ(values[16], 7);
  EXPECT_EQ(values[1], -8);
}

TEST(BlockType, SixBitScalesOfTheUpperFourAreCutInTwo) {
  auto block = zeros(BlockType::q4_k);
  block[1] = block[3] = kOneHigh;  // d = dmin = 1
  block[4 + 0] = std::byte{0xc1};
  block[4 + 4] = std::byte{0x82};
  block[4 + 8] = std::byte{0x53};
  block[16] = std::byte{0x01};       // value 0, of group 0
  block[16 + 64] = std::byte{0x01};  // value 128, of group 4
  const auto values = decode(BlockType::q4_k, block);
  EXPECT_EQ(values[0], 1 * 1 - 2);
  EXPECT_EQ(values[1], -2);
  EXPECT_EQ(values[128], 51 * 1 - 37);
  EXPECT_EQ(values[129], -37);
}

TEST(BlockType, SixBitsAreCenteredAt32) {
  auto block = zeros(BlockType::q6_k);
  for (size_t i = 192; i < 208; ++i) block[i] = std::byte{1};
  block[208] = kOneLow;
  block[209] = kOneHigh;
  for (float value : decode(BlockType::q6_k, block)) EXPECT_EQ(value, -32);
}

TEST(BlockType, ScalesThatAreNoNumbersAreFound) {
  for (BlockType type : kTypes) {
    std::vector<std::byte> blocks(3 * block_bytes(type));
    const size_t scale = type == BlockType::q6_k ? 208 : 0;
    EXPECT_FALSE(first_bad_scale(type, blocks).has_value());
    blocks[2 * block_bytes(type) + scale + 1] = std::byte{0x7c};  // infinity
    EXPECT_EQ(first_bad_scale(type, blocks), 2U) << name_of(type);
    if (type == BlockType::q4_1 || type == BlockType::q5_1 || type == BlockType::q4_k || type == BlockType::q5_k) {
      blocks[block_bytes(type) + 3] = std::byte{0xfe};  // NaN as the second scale
      EXPECT_EQ(first_bad_scale(type, blocks), 1U) << name_of(type);
    }
  }
}

TEST(BlockType, RowsOfAMatrix) {
  const std::vector<std::byte> bytes(3 * 2 * 18);
  const BlockView view{BlockType::q4_0, {3, 64}, bytes};
  EXPECT_EQ(view.row_bytes(), 36U);
  EXPECT_EQ(view.row(2).data(), bytes.data() + 72);
}

}  // namespace
}  // namespace clearhead::tensor
