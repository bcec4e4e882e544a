// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace clearhead::attention {

// Rows that stand apart, of which a part is wanted.
struct ScatteredRows {
  const float* first;
  size_t stride;  // floats from row to row
  size_t width;   // floats of a row
  size_t rows;
};

// Asks for part of parts of the rows before somebody reads them: rows of one head are too short and too far apart for a
// processor to guess.
inline void prefetch(const ScatteredRows& wanted, size_t part, size_t parts) {
  constexpr size_t kLine = 64 / sizeof(float);
  asm volatile("");  // or g++ takes the whole function away, for it has no result
  for (size_t row = wanted.rows * part / parts; row < wanted.rows * (part + 1) / parts; ++row) {
    const float* place = wanted.first + row * wanted.stride;
    for (size_t i = 0; i < wanted.width; i += kLine) __builtin_prefetch(place + i, 0, 2);
  }
}

}  // namespace clearhead::attention
