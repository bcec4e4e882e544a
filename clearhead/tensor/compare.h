// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "clearhead/tensor/tensor.h"

namespace clearhead::tensor {

// How far two tensors are apart. Each figure is the largest over all elements; NaN against NaN and equal infinities
// count as no difference; NaN against a number, and infinity against anything else, as infinitely far.
struct Difference {
  double max_abs = 0;
  double max_relative = 0;  // |a - b| / |b|; 0 where both are 0
  uint64_t max_ulp = 0;     // steps between neighbouring floats; only for two F32 tensors
  size_t at = 0;            // flat index of the largest absolute difference
};

// Compares element by element, b being the truth. Throws: Error if shapes differ.
Difference compare(const TensorView& a, const TensorView& b);

// Steps from a to b over the ordered floats (-0 and +0 are no step apart). NaN against a number: UINT64_MAX.
uint64_t ulp_distance(float a, float b);

// True if dtype, shape and every bit agree.
bool same_bits(const TensorView& a, const TensorView& b);

}  // namespace clearhead::tensor
