// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace clearhead::attention {

// Rows that stand apart, of which a part is wanted.
template <class Number>
struct ScatteredRows {
  Number* first;
  size_t stride;  // elements from row to row
  size_t width;   // elements of a row
  size_t rows;
};

// Asks for part of parts of the rows before somebody needs them, to read or, if kWrite, to write: rows of one head are
// too short and too far apart for a processor to guess.
template <bool kWrite, class Number>
void prefetch(const ScatteredRows<Number>& wanted, size_t part, size_t parts) {
  constexpr size_t kLine = 64 / sizeof(Number);
  asm volatile("");  // or g++ takes the whole function away, for it has no result
  for (size_t row = wanted.rows * part / parts; row < wanted.rows * (part + 1) / parts; ++row) {
    const Number* place = wanted.first + row * wanted.stride;
    for (size_t i = 0; i < wanted.width; i += kLine) __builtin_prefetch(place + i, kWrite ? 1 : 0, 2);
  }
}

}  // namespace clearhead::attention
