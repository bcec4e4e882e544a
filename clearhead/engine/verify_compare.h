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
StageCheck compare(capture::Stage stage, size_t layer, const tensor::TensorView& found, const Bounded& expected);

// Takes one element into a check: its difference, and what share that is of its bound. True if the share is the
// largest so far; then its place is the caller's to say, and tolerance has been set.
bool note_difference(StageCheck& check, double found, double expected, double bound);

// What verify_end_to_end allows: a share of the largest value of a stage.
double drift_share();
double drift_bound(double largest);

// A recorded stage beside its values recomputed from the token ids, for all heads of the model.
StageCheck compare_drift(capture::Stage stage, size_t layer, const capture::Trace& trace, const Bounded& truth);

// One row of kernel scores, and how far the largest of them may be off.
struct ScoreRow {
  std::span<const double> scores;
  double sink, drift;
};

// The row's reference or sum, as found would be right: with whichever whole number a largest score that far off could
// have given.
double settled(double found, capture::Stage stage, const ScoreRow& scores);

}  // namespace clearhead::engine
