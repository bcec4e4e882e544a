// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "clearhead/capture/trace.h"
#include "clearhead/engine/verify.h"
#include "clearhead/engine/verify_bounded.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::engine {

// The recorded values of a stage beside what they should be. Shapes: found as recorded, expected the same, flat.
StageCheck compare(capture::Stage stage, size_t layer, const tensor::Tensor& found, const Bounded& expected);

// A stage recomputed from the token ids, for all heads of the model.
struct Drift {
  capture::Stage stage;
  const capture::Trace& trace;
  const std::vector<double>* kernel_scores;  // of the layer: [num_heads, seq, seq]; null before the layers
  std::span<const float> sinks;              // [num_heads], or empty
};

// The same for the stage's recorded heads of truth; 1e-4 of the largest value of the stage is allowed. Row references
// and sums are compared with whichever whole number a largest score that far off could have given.
StageCheck compare_drift(const Drift& drift, size_t layer, const Bounded& truth);

}  // namespace clearhead::engine
