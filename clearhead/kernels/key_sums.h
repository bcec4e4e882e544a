// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "clearhead/kernels/softmax.h"

namespace clearhead::kernels {

// Rows whose weights are added up in float before they are added in double.
constexpr size_t kSummedRows = 16;

// Adds the weights of rows whose summaries are finished to what each key has been given so far:
//
//   sums_j = sums_j + sum_i exp2(t_ij - r_i) / l_i
//
// 0 for a key with score -infinity. Rows in order, kSummedRows of them in float at a time, then in double.
// Shapes: scores [rows, keys up to a multiple of 16], stride floats from row to row; sums [keys].
void add_to_key_sums(const float* scores, size_t stride, std::span<const RowSummary> rows, std::span<double> sums);

}  // namespace clearhead::kernels
