// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "clearhead/kernels/tile.h"

namespace clearhead::kernels {

// Two bfloat16 as one number, the first in its lower half: what one step of a product in bfloat16 reads.
using Pair = uint32_t;

// Pairs that count numbers need; the last one is filled up with 0.
constexpr size_t pair_count(size_t count) { return (count + 1) / 2; }

// One product in bfloat16 of a plain matrix with a packed one.
struct PairProduct {
  const Pair* left;      // [rows, pairs]
  size_t left_stride;    // pairs from row to row
  const Pair* panels;    // [panels, pairs, 16]
  size_t panel_stride;   // pairs from panel to panel
  float* output;         // [rows, 16 * panels]
  size_t output_stride;  // floats from row to row
  size_t rows;
  size_t pairs;  // the inner dimension
  size_t num_panels;
  float factor = 1.0f;
  bool accumulate = false;  // go on from what stands in output instead of +0
  float* maxima = nullptr;  // [rows, 16]: the largest output of each row and virtual lane goes on; nullptr: none wanted
};

// output = factor (left times panels, or output + left times panels) + 0:
//
//   sum_ij = flush(fma(left_ik[0], panel_kj[0], flush(fma(left_ik[1], panel_kj[1], sum_ij))))    k = 0, 1, ...
//
// The bits of the instruction vdpbf16ps, which computes it where the machine has AVX512_BF16 and the target in use is
// AVX-512; elsewhere the same steps are done one by one. flush makes every number below 2^-126 a zero of its sign,
// what is read as well as what is found. One accumulator per output, the inner dimension in order, as tile_product has
// it; the same bits on every SIMD target with fused multiply-add. A NaN may have any bits.
// Error: at most (2 pairs + 1) 2^-24 sum |left_ik panel_kj| + 2 pairs 2^-126, of the rounded numbers.
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, VDPBF16PS.
void pair_product(const PairProduct& product);

// The same product for the pairs of one row in which some key is visible, the other half of such a pair taken as 0, as
// if hidden keys were not there, whatever their values are.
// Shapes: left [pairs]; panels [panels, pairs, 16]; visible [2 pairs], 0 for a key that may not be seen; output
// [16 * panels].
void pair_product_of_visible(const PairProduct& row, const uint8_t* visible);

// Whether pair_product uses the instruction.
bool has_pair_instruction();

// Rounds numbers to the nearest bfloat16, ties to even; below 2^-126 they become a zero of their sign, what is too
// large becomes infinity, NaN stays NaN. Shapes: numbers [rows, columns], stride floats from row to row; pairs [rows,
// pair_count(columns)], pair_stride from row to row.
void round_to_pairs(const float* numbers, size_t stride, size_t rows, size_t columns, Pair* pairs, size_t pair_stride);

// Rounds the keys [begin, end) of rows of powers, and says what the rounded ones add up to: over 16 virtual lanes, the
// pair's place in the tile modulo 16, its second number first, folded 8, 4, 2, 1. Shapes: powers [rows, end], stride
// floats from row to row; pairs [rows, pair_count(end)], pair_stride from row to row; sums [rows]; begin is a multiple
// of 16, rows at most 16.
void round_powers(const float* powers, size_t stride, size_t rows, size_t begin, size_t end, Pair* pairs,
                  size_t pair_stride, float* sums);

// As pack_columns and pack_rows, rounded: pairs run along depth. Shapes: panels [panel_count(columns),
// pair_count(depth), 16].
void pack_columns_to_pairs(const float* matrix, size_t stride, size_t depth, size_t columns, std::span<Pair> panels);
void pack_rows_to_pairs(const float* matrix, size_t stride, size_t depth, size_t columns, std::span<Pair> panels);

// Whether no number of these pairs is NaN or infinite.
bool all_finite(std::span<const Pair> pairs);

}  // namespace clearhead::kernels
