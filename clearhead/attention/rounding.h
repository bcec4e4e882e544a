// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <span>

namespace clearhead::attention {

// How far rounded numbers are from what they were.
struct RoundingError {
  double squares = 0;        // of the numbers
  double error_squares = 0;  // of what rounding changed; non-finite numbers do not count

  void add(const RoundingError& other) {
    squares += other.squares;
    error_squares += other.error_squares;
  }
  // Root of the mean square of the change, as a part of that of the numbers.
  double relative() const { return squares > 0 ? std::sqrt(error_squares / squares) : 0.0; }
};

// Rounds every number to the nearest bfloat16, ties to even, and leaves it a float; NaN stays NaN, what is too large
// becomes infinity. Error: at most 2^-8 of the number (2^-134 below 2^-126).
RoundingError round_to_bfloat16(std::span<float> numbers);

}  // namespace clearhead::attention
