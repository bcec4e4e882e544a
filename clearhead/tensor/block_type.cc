// SPDX-License-Identifier: Apache-2.0
#include "clearhead/tensor/block_type.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "clearhead/tensor/dtype.h"
#include "clearhead/tensor/split_block.h"

namespace clearhead::tensor {
namespace {

constexpr size_t kNone = ~size_t{0};

struct Row {
  BlockType type;
  std::string_view name;
  size_t values, bytes;
  size_t scale, second_scale;  // where the half floats stand; kNone: there is no second
};

constexpr std::array<Row, 8> kTable = {{{BlockType::q4_0, "Q4_0", 32, 18, 0, kNone},
                                        {BlockType::q4_1, "Q4_1", 32, 20, 0, 2},
                                        {BlockType::q5_0, "Q5_0", 32, 22, 0, kNone},
                                        {BlockType::q5_1, "Q5_1", 32, 24, 0, 2},
                                        {BlockType::q8_0, "Q8_0", 32, 34, 0, kNone},
                                        {BlockType::q4_k, "Q4_K", 256, 144, 0, 2},
                                        {BlockType::q5_k, "Q5_K", 256, 176, 0, 2},
                                        {BlockType::q6_k, "Q6_K", 256, 210, 208, kNone}}};

const Row& row_of(BlockType type) { return kTable[static_cast<size_t>(type)]; }

uint16_t half_bits(const std::byte* bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return bits;
}

float half_at(const std::byte* bytes) { return to_float(Half{half_bits(bytes)}); }

bool is_finite_half(const std::byte* bytes) { return (half_bits(bytes) & 0x7c00) != 0x7c00; }

unsigned at(const std::byte* bytes, size_t i) { return std::to_integer<unsigned>(bytes[i]); }

int signed_at(const std::byte* bytes, size_t i) { return static_cast<int8_t>(at(bytes, i)); }

// Scale and minimum j of the eight that stand in 12 bytes, 6 bits each.
struct ScaleAndMinimum {
  unsigned scale, minimum;
};

ScaleAndMinimum packed_scale(const std::byte* packed, size_t j) {
  if (j < 4) return {at(packed, j) & 63, at(packed, j + 4) & 63};
  return {(at(packed, j + 4) & 15) | (at(packed, j - 4) >> 6 << 4),
          (at(packed, j + 4) >> 4) | (at(packed, j) >> 6 << 4)};
}

// The integers of a type of 32 values, and where its fifth bits stand.
void split_small(const Row& row, const std::byte* block, SplitBlock& split) {
  const bool has_minimum = row.second_scale != kNone;
  const bool has_fifth = row.type == BlockType::q5_0 || row.type == BlockType::q5_1;
  split.scale[0] = half_at(block);
  if (has_minimum) split.addend[0] = half_at(block + 2);
  const std::byte* rest = block + (has_minimum ? 4 : 2);
  uint32_t high = 0;
  if (!has_fifth) {
    for (size_t j = 0; j < 16; ++j) split.q[j] = static_cast<uint8_t>(at(rest, j) & 15);
    for (size_t j = 0; j < 16; ++j) split.q[j + 16] = static_cast<uint8_t>(at(rest, j) >> 4);
    return;
  }
  std::memcpy(&high, rest, sizeof high);
  rest += sizeof high;
  for (size_t j = 0; j < 16; ++j) {
    split.q[j] = static_cast<uint8_t>((at(rest, j) & 15) | ((high >> j & 1) << 4));
    split.q[j + 16] = static_cast<uint8_t>((at(rest, j) >> 4) | ((high >> (j + 16) & 1) << 4));
  }
}

void split_k(const std::byte* block, const std::byte* fifth, const std::byte* low, SplitBlock& split) {
  const float d = half_at(block), dmin = half_at(block + 2);
  for (size_t group = 0; group < 8; ++group) {
    const ScaleAndMinimum packed = packed_scale(block + 4, group);
    split.scale[group] = d * static_cast<float>(packed.scale);
    split.addend[group] = -(dmin * static_cast<float>(packed.minimum));
    for (size_t i = 0; i < 32; ++i) {
      unsigned q = at(low, group / 2 * 32 + i) >> (group % 2 * 4) & 15;
      if (fifth != nullptr) q |= (at(fifth, i) >> group & 1) << 4;
      split.q[group * 32 + i] = static_cast<uint8_t>(q);
    }
  }
}

void split_q6_k(const std::byte* block, SplitBlock& split) {
  const float d = half_at(block + 208);
  for (size_t group = 0; group < 16; ++group)
    split.scale[group] = d * static_cast<float>(signed_at(block + 192, group));
  for (size_t i = 0; i < 256; ++i) {
    const size_t half = i / 128, quarter = i % 128 / 32, l = i % 32;
    const unsigned four = at(block, half * 64 + quarter % 2 * 32 + l) >> (quarter / 2 * 4) & 15;
    const unsigned two = at(block + 128, half * 32 + l) >> (2 * quarter) & 3;
    split.q[i] = static_cast<uint8_t>(four | two << 4);
  }
}

}  // namespace

std::string_view name_of(BlockType type) { return row_of(type).name; }
size_t block_values(BlockType type) { return row_of(type).values; }
size_t block_bytes(BlockType type) { return row_of(type).bytes; }

SplitType split_type(BlockType type) {
  switch (type) {
    case BlockType::q4_0: return {32, true, false, 8, true};
    case BlockType::q4_1: return {32, true, true, 0, true};
    case BlockType::q5_0: return {32, false, false, 16, true};
    case BlockType::q5_1: return {32, false, true, 0, true};
    case BlockType::q8_0: return {32, false, false, 128, true};
    case BlockType::q4_k: return {32, true, true, 0, false};
    case BlockType::q5_k: return {32, false, true, 0, false};
    case BlockType::q6_k: return {16, false, false, 32, false};
  }
  return {};
}

void split_block(BlockType type, std::span<const std::byte> block, SplitBlock& split) {
  const std::byte* bytes = block.data();
  switch (type) {
    case BlockType::q8_0:
      split.scale[0] = half_at(bytes);
      for (size_t i = 0; i < 32; ++i) split.q[i] = static_cast<uint8_t>(signed_at(bytes + 2, i) + 128);
      return;
    case BlockType::q4_k: return split_k(bytes, nullptr, bytes + 16, split);
    case BlockType::q5_k: return split_k(bytes, bytes + 16, bytes + 48, split);
    case BlockType::q6_k: return split_q6_k(bytes, split);
    default: return split_small(row_of(type), bytes, split);
  }
}

size_t BlockView::row_bytes() const { return shape[shape.rank() - 1] / block_values(type) * block_bytes(type); }

void decode_blocks(BlockType type, std::span<const std::byte> blocks, std::span<float> values) {
  const Row& row = row_of(type);
  const SplitType kind = split_type(type);
  const size_t count = blocks.size() / row.bytes;
  SplitBlock split;
  for (size_t block = 0; block < count; ++block) {
    split_block(type, blocks.subspan(block * row.bytes, row.bytes), split);
    for (size_t i = 0; i < row.values; ++i) {
      const size_t group = i / kind.group;
      const float product = split.scale[group] * static_cast<float>(split.q[i] - kind.middle);
      values[block * row.values + i] = kind.has_addend ? product + split.addend[group] : product;
    }
  }
}

std::optional<size_t> first_bad_scale(BlockType type, std::span<const std::byte> blocks) {
  const Row& row = row_of(type);
  const size_t count = blocks.size() / row.bytes;
  for (size_t i = 0; i < count; ++i) {
    const std::byte* block = blocks.data() + i * row.bytes;
    if (!is_finite_half(block + row.scale)) return i;
    if (row.second_scale != kNone && !is_finite_half(block + row.second_scale)) return i;
  }
  return std::nullopt;
}

}  // namespace clearhead::tensor
