// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "clearhead/tensor/shape.h"

namespace clearhead::tensor {

// Types of few bits, of which a block of neighbouring values shares scales. A block's bytes, little-endian; d, m and
// dmin are half floats, q an unsigned integer of as many bits as the name says:
//
//   q4_0   d, 16 bytes                      d (q - 8)         the low halves of the bytes, then the high ones
//   q4_1   d, m, 16 bytes                   d q + m           likewise
//   q5_0   d, 4 bytes, 16 bytes             d (q - 16)        likewise; bit j of the 4 bytes is the fifth of value j
//   q5_1   d, m, 4 bytes, 16 bytes          d q + m           likewise
//   q8_0   d, 32 signed bytes               d q
//   q4_k   d, dmin, 12 bytes, 128 bytes     (d sc) q - dmin m   sc and m of 6 bits for each 32 values
//   q5_k   d, dmin, 12 bytes, 32, 128       likewise; bit c of the 32 bytes is the fifth of values 32 c ...
//   q6_k   128 bytes, 64 bytes, 16 sc, d    (d sc) (q - 32)   a signed sc for each 16 values
//
// Source: the GGUF format and its reference implementation.
enum class BlockType { q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k };

// "Q4_0", "Q4_1", ...
std::string_view name_of(BlockType type);

// Values and bytes of one block.
size_t block_values(BlockType type);
size_t block_bytes(BlockType type);

// The largest block has so many values.
inline constexpr size_t kMaxBlockValues = 256;

// Rows of blocks that lie in somebody else's memory, at any alignment.
struct BlockView {
  BlockType type;
  Shape shape;  // [..., columns]; columns is a multiple of block_values(type)
  std::span<const std::byte> bytes;

  size_t row_bytes() const;
  // Row i of all rows together.
  std::span<const std::byte> row(size_t i) const { return bytes.subspan(i * row_bytes(), row_bytes()); }
};

// Writes the values of whole blocks, each step of the formula above rounded once.
// Shapes: blocks [n, block_bytes], values [n, block_values].
void decode_blocks(BlockType type, std::span<const std::byte> blocks, std::span<float> values);

// Index of the first block that has a scale which is infinite or no number; nothing if there is none.
std::optional<size_t> first_bad_scale(BlockType type, std::span<const std::byte> blocks);

}  // namespace clearhead::tensor
