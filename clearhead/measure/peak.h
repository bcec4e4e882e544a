// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

namespace clearhead::measure {

// The most that this machine gives on its present SIMD target, all threads together: the best of several runs of about
// a millisecond, on numbers that stay in registers or in the first cache.
struct Peak {
  double multiply_add_gflops;         // multiplications and additions in one, 2 operations a lane, F32
  double exp2_giga;                   // 10^9 powers of two a second, polynomial of degree 5
  std::optional<double> bf16_gflops;  // products of BF16 added in F32; only where the processor has them
};

// Units: 10^9 operations a second.
double multiply_add_peak(size_t threads);
double exp2_peak(size_t threads);
std::optional<double> bf16_peak(size_t threads);
Peak measure_peak(size_t threads);

// The share of the peak that attention can reach at all, exponentials and products one after the other: for each
// weight 4 head_dim operations and one power of two.
//
//   (4 head_dim / multiply_add) / (4 head_dim / multiply_add + 1 / exp2)
double attention_limit(const Peak& peak, size_t head_dim);

}  // namespace clearhead::measure
