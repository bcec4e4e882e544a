// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "clearhead/capture/trace.h"
#include "clearhead/engine/verify.h"
#include "clearhead/engine/verify_stages.h"

namespace clearhead::engine {

inline constexpr size_t kScoresTogether = size_t{1} << 18;  // that are worked on at once
inline constexpr size_t kBytesOfAScore = 80;  // of all copies of them, in float, in double and with bounds

// The stages between query, key, value and head_output are recomputed in blocks of rows: nothing that grows with the
// square of the length is held, whether the trace has recorded it or rebuilds it.
bool is_of_rows(capture::Stage stage);

// Checks one of these stages of a layer against what its recorded inputs give; skipped if one of them is not there.
StageCheck check_rows(const StageInputs& inputs, const capture::Trace& trace, capture::Stage stage, size_t layer);

// Checks all of them that the trace shows against what query, key and value of inputs give, all heads of the model, as
// verify_end_to_end does; and the values of head_output [seq, num_heads, value_dim].
struct RowsEndToEnd {
  std::vector<StageCheck> checks;
  std::vector<double> head_output;
};
RowsEndToEnd check_rows_end_to_end(const StageInputs& inputs, const capture::Trace& trace, size_t layer);

}  // namespace clearhead::engine
