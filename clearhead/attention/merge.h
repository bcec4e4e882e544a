// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <span>

#include "clearhead/kernels/attention_tile.h"
#include "clearhead/kernels/softmax.h"

namespace clearhead::attention {

// Keys per tile: tiles stand at places 0, 256, 512, ... of the sequence itself, whatever the machine or the length, so
// that sums over keys are the same sums everywhere.
constexpr size_t kKeyTile = kernels::kTileKeys;

// A row that has seen no key, and whether one has.
constexpr kernels::RowSummary kNothingSeen = {-std::numeric_limits<float>::infinity(), 0.0f};
inline bool has_seen(const kernels::RowSummary& row) { return row.reference != kNothingSeen.reference; }

// Merges what a row has seen of the next key tile to the right into what it has seen so far:
//
//   r = max(r_a, r_b)    l = l_a 2^(r_a - r) + l_b 2^(r_b - r)    o likewise
//
// by one multiplication and one fused multiply-add; a factor below 2^-126 is 0. What has seen no key changes nothing;
// the first that has is copied. Not associative: always from left to right.
// Shapes: output, tile_output [value_dim].
// Bits: the same on every SIMD target with fused multiply-add.
void merge(kernels::RowSummary& row, std::span<float> output, const kernels::RowSummary& tile,
           std::span<const float> tile_output);

// Merges a learned sink, after all keys: a tile of its own with t = sink log2 e (natural logit) and output 0. A row
// that has seen no key stays as it is: nothing to see, whatever its sink. Shapes: output [value_dim].
void merge_sink(kernels::RowSummary& row, std::span<float> output, float sink);

// Ends a row: output = output times (1 / divisor), the reciprocal rounded once; all 0 if no key was seen. NaN becomes
// 0x7fc00000, in the row's summary too.
// Shapes: output [value_dim].
void finish(kernels::RowSummary& row, std::span<float> output);

}  // namespace clearhead::attention
