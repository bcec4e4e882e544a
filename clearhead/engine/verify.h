// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "clearhead/capture/trace.h"
#include "clearhead/engine/session.h"

namespace clearhead::engine {

// One stage of one layer, recomputed in double by the plain reference.
struct StageCheck {
  capture::Stage stage;
  size_t layer = 0;
  bool skipped = false;         // an input of the stage was not recorded
  double max_abs = 0;           // largest absolute difference; infinity where a number should be and none is
  double tolerance = 0;         // allowed where the difference is largest relative to what is allowed
  std::vector<size_t> at = {};  // index of that place, in the stage's shape
  double worst_share = 0;       // largest difference / tolerance over all elements; at most 1 is ok
};

struct VerifyReport {
  std::vector<StageCheck> stages;
  bool ok = false;  // something was checked and nothing is over its tolerance
};

// Recomputes every recorded stage in double from the recorded inputs of that stage: errors do not pile up and the
// tolerance is a proof. Sums of K products: (K + 8) 2^-24 sum|terms| + 2^-126 per element, for head_output twice that
// (verify_rows.h); what is copied or looked up and the row reference: no difference at all; weights 1e-6 from recorded
// kernel_scores, and exactly 0 where a key may not be seen; norms and activations the stated bound of their kernel, and
// what their input may be off carried through them.
// Throws: Error if the trace does not fit the model.
VerifyReport verify(const model::Transformer& model, const capture::Trace& trace);
// With a session the words that the trace shows are proved like its numbers: the text is cut into tokens again, and its
// attention must be that of the model. Throws: Error also if they differ.
VerifyReport verify(const Session& session, const capture::Trace& trace);

// Recomputes everything in double from the token ids; tolerance 1e-4 of the stage's largest value. A row reference may
// be the next whole number where the row's largest score is that close to one, and the row's sum goes with it.
// Throws: Error if the trace does not fit the model.
VerifyReport verify_end_to_end(const model::Transformer& model, const capture::Trace& trace);
VerifyReport verify_end_to_end(const Session& session, const capture::Trace& trace);

}  // namespace clearhead::engine
