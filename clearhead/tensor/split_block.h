// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "clearhead/tensor/block_type.h"

namespace clearhead::tensor {

// One block as integers that share scales: value i is
//
//   scale_g (q_i - middle) + addend_g      g = i / group
//
// each step rounded once, and without the sum where the type has no addend.
struct SplitBlock {
  std::array<uint8_t, kMaxBlockValues> q;
  std::array<float, kMaxBlockValues / 16> scale, addend;
};

// What split blocks of a type have in common.
struct SplitType {
  size_t group;    // values that share a scale
  bool four_bits;  // all q are below 16
  bool has_addend;
  int middle;
  bool half_scales;  // scales and addends are halves, exactly
};

SplitType split_type(BlockType type);
void split_block(BlockType type, std::span<const std::byte> block, SplitBlock& split);

}  // namespace clearhead::tensor
