// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace clearhead::kernels {

struct RowCollector;

// What a row keeps of the keys it has seen so far beside its summary; sums in units of 2^reference.
struct RowEvidence {
  float score_sum;     // sum of exp2(t - r) (t - r)
  float distance_sum;  // sum of exp2(t - r) |j - position|
  float largest;       // the largest kernel score
  size_t key;          // the first key that has it
};

// Where rows keep it.
struct EvidenceOfRows {
  const int64_t* positions = nullptr;       // [rows]
  RowEvidence* rows = nullptr;              // [rows]; nullptr: nothing is kept
  const RowCollector* collector = nullptr;  // what else is collected; nullptr: nothing
};

}  // namespace clearhead::kernels
