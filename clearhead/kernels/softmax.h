// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace clearhead::kernels {

// Turns a row of numbers into weights that sum to 1:
//
//   p_i = e^(x_i - max x) / sum_j e^(x_j - max x)
//
// Shapes: input, output [count]; output may be input. Units: natural.
// Returns false, and zeros, if nothing can be seen: no element, or every element -inf. A NaN or +inf makes the row NaN.
// Error: at most p_i (4e-7 + 1e-7 |x_i - max x|), measured by softmax_test; below 2^-126 exactly 0. Bits: the same on
// every SIMD target with fused multiply-add, because the sum goes over 16 virtual lanes.
bool softmax(std::span<const float> input, std::span<float> output);

// What a row of scores keeps of itself over the keys of one tile, or of many once they are merged. Units: scores that
// are exponents of 2 (kernel scores).
struct RowSummary {
  float reference;  // ceil(largest score), an integer and never -0; -inf if no key is seen
  float sum;        // sum of 2^(score - reference) over the keys that are seen, at least 1/2; 0 if there are none
  // In bfloat16 the sum of the same powers after rounding, which is what values were multiplied by; else 0.
  float rounded_sum = 0.0f;

  // What the sum of powers times values is divided by.
  float divisor() const { return rounded_sum == 0 ? sum : rounded_sum; }
};

// Replaces the scores of one row and key tile by 2^(score - reference), keys that may not be seen by exactly 0.
// The sum goes over 16 virtual lanes: the key's index in the tile modulo 16, folded 8, 4, 2, 1.
//
// A key with score -inf counts as not seen. What stands at a key that may not be seen touches nothing, NaN included. A
// NaN or +inf that is seen makes the row NaN: reference 0, sum NaN, every key that may be seen NaN. Shapes: scores
// [keys]; visible [keys], 0 for a key that may not be seen, or empty if all may.
RowSummary softmax_tile(std::span<float> scores, std::span<const uint8_t> visible);

// The weights of a row whose reference and sum are known: 2^(score - reference) / sum, exactly 0 for keys that may not
// be seen, and for all if the summary has seen none; NaN for all that may be seen if its sum is NaN. Shapes: scores,
// weights [keys]; visible as above; weights may be scores.
void weights_of_scores(std::span<const float> scores, std::span<const uint8_t> visible, RowSummary summary,
                       std::span<float> weights);

}  // namespace clearhead::kernels
