// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "clearhead/views/labels.h"

namespace clearhead::views {

// Names above the columns of a map: side by side, one character below the other, or a ruler of numbers.
enum class ColumnNames { horizontal, vertical, ruler };

// How a map of n tokens is fitted into columns.
struct MapLayout {
  size_t pool = 1;   // tokens on each side of a cell
  size_t bins = 0;   // cells per row: ceil(n / pool)
  size_t cell = 1;   // columns of a cell
  size_t label = 0;  // columns of the names before the rows
  bool numbers = false;
  bool half_blocks = false;  // two rows in one line: upper half block over background
  ColumnNames names = ColumnNames::ruler;
};

// Cells as large as the labels' width allows; pooled if not even the smallest fit.
MapLayout map_layout(const AttentionMap& map, const Labels& labels);

// The largest weight of each cell of pool x pool tokens, the last cells smaller. Shapes: weights [1, 1, n, n], result
// [bins, bins].
std::vector<float> pooled_by_maximum(const capture::WeightSource& weights, size_t pool);

}  // namespace clearhead::views
