// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/kernels/bfloat16_tile.h"

// What bfloat16_tile.h promises, by the instructions of AVX512_BF16. Call these only where the machine has them.
namespace clearhead::kernels::instruction {

// Whether this processor has them; false on one that is not x86.
bool available();

void pair_product(const PairProduct& product);
void round_to_pairs(const float* numbers, size_t stride, size_t rows, size_t columns, Pair* pairs, size_t pair_stride);
void round_powers(const float* powers, size_t stride, size_t rows, size_t begin, size_t end, Pair* pairs,
                  size_t pair_stride, float* sums);

// Scores of at most 16 rows that become powers and are rounded at once, keys [begin, end) of a tile, both multiples of
// 16; the powers themselves are not kept.
struct PowersOfRows {
  const float* scores;  // [rows, end], stride floats from row to row
  size_t stride, rows, begin, end;
  const float* references;  // [rows]
  Pair* pairs;              // [rows, end / 2], pair_stride from row to row
  size_t pair_stride;
  float* sums;          // [rows]: of the powers, as exponentials_of_rows adds them up
  float* rounded_sums;  // [rows]: as round_powers has them
};
void raise_and_round(const PowersOfRows& powers);

bool all_finite(const Pair* pairs, size_t count);

// One panel of at most 16 columns.
void pack_column_panel(const float* matrix, size_t stride, size_t depth, size_t columns, Pair* panel);
void pack_row_panel(const float* matrix, size_t stride, size_t depth, size_t columns, Pair* panel);

}  // namespace clearhead::kernels::instruction
