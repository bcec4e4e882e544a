// SPDX-License-Identifier: Apache-2.0
#include "clearhead/tensor/block_type.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "clearhead/tensor/dtype.h"

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

// Four bits, and a fifth from high where there is one, of 32 values: value(q) each. The first 16 are the low halves.
template <class Value>
void decode_halves(const std::byte* bytes, uint32_t high, float* values, const Value& value) {
  for (size_t j = 0; j < 16; ++j) {
    values[j] = value(static_cast<float>((at(bytes, j) & 15) | ((high >> j & 1) << 4)));
    values[j + 16] = value(static_cast<float>((at(bytes, j) >> 4) | ((high >> (j + 16) & 1) << 4)));
  }
}

// Types of 32 values: [d] or [d, m], then the fifth bits where there are any, then the low four of each.
void decode_small(const Row& row, const std::byte* block, float* values) {
  const bool has_minimum = row.second_scale != kNone,
             has_fifth = row.type == BlockType::q5_0 || row.type == BlockType::q5_1;
  const float d = half_at(block), m = has_minimum ? half_at(block + 2) : 0;
  const std::byte* rest = block + (has_minimum ? 4 : 2);
  uint32_t high = 0;
  if (has_fifth) std::memcpy(&high, rest, sizeof high);
  if (has_fifth) rest += sizeof high;
  if (has_minimum) return decode_halves(rest, high, values, [&](float q) { return d * q + m; });
  const float middle = has_fifth ? 16 : 8;
  decode_halves(rest, high, values, [&](float q) { return d * (q - middle); });
}

// Scale and minimum j of the eight that stand in 12 bytes, 6 bits each.
struct ScaleAndMinimum {
  unsigned scale, minimum;
};

ScaleAndMinimum packed_scale(const std::byte* packed, size_t j) {
  if (j < 4) return {at(packed, j) & 63, at(packed, j + 4) & 63};
  return {(at(packed, j + 4) & 15) | (at(packed, j - 4) >> 6 << 4),
          (at(packed, j + 4) >> 4) | (at(packed, j) >> 6 << 4)};
}

// fifth: 32 bytes with a bit for each group of 32 values, or null.
void decode_k(const std::byte* block, const std::byte* fifth, const std::byte* low, float* values) {
  const float d = half_at(block), dmin = half_at(block + 2);
  for (size_t group = 0; group < 8; ++group) {
    const ScaleAndMinimum packed = packed_scale(block + 4, group);
    const float scale = d * static_cast<float>(packed.scale), minimum = dmin * static_cast<float>(packed.minimum);
    for (size_t i = 0; i < 32; ++i) {
      unsigned q = at(low, group / 2 * 32 + i) >> (group % 2 * 4) & 15;
      if (fifth != nullptr) q |= (at(fifth, i) >> group & 1) << 4;
      values[group * 32 + i] = scale * static_cast<float>(q) - minimum;
    }
  }
}

void decode_q6_k(const std::byte* block, float* values) {
  const std::byte *low = block, *high = block + 128, *scales = block + 192;
  const float d = half_at(block + 208);
  for (size_t i = 0; i < 256; ++i) {
    const size_t half = i / 128, quarter = i % 128 / 32, l = i % 32;
    const unsigned four = at(low, half * 64 + quarter % 2 * 32 + l) >> (quarter / 2 * 4) & 15;
    const unsigned two = at(high, half * 32 + l) >> (2 * quarter) & 3;
    const float scale = d * static_cast<float>(signed_at(scales, i / 16));
    values[i] = scale * static_cast<float>(static_cast<int>(four | two << 4) - 32);
  }
}

void decode_block(const Row& row, const std::byte* block, float* values) {
  switch (row.type) {
    case BlockType::q8_0: {
      const float d = half_at(block);
      for (size_t i = 0; i < 32; ++i) values[i] = d * static_cast<float>(signed_at(block + 2, i));
      return;
    }
    case BlockType::q4_k: return decode_k(block, nullptr, block + 16, values);
    case BlockType::q5_k: return decode_k(block, block + 16, block + 48, values);
    case BlockType::q6_k: return decode_q6_k(block, values);
    default: return decode_small(row, block, values);
  }
}

}  // namespace

std::string_view name_of(BlockType type) { return row_of(type).name; }
size_t block_values(BlockType type) { return row_of(type).values; }
size_t block_bytes(BlockType type) { return row_of(type).bytes; }

size_t BlockView::row_bytes() const { return shape[shape.rank() - 1] / block_values(type) * block_bytes(type); }

void decode_blocks(BlockType type, std::span<const std::byte> blocks, std::span<float> values) {
  const Row& row = row_of(type);
  const size_t count = blocks.size() / row.bytes;
  for (size_t i = 0; i < count; ++i) decode_block(row, blocks.data() + i * row.bytes, values.data() + i * row.values);
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
