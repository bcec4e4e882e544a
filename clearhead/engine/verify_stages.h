// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "clearhead/capture/stage.h"
#include "clearhead/capture/trace.h"
#include "clearhead/engine/verify_bounded.h"
#include "clearhead/model/transformer.h"

namespace clearhead::engine {

// What recomputing a stage may read: the model, the tokens, and values of other stages, recorded or recomputed.
struct StageInputs {
  const model::Transformer& model;
  std::span<const capture::TraceToken> tokens;  // [seq]
  size_t declared_len;                          // of the run; 0: as many as tokens
  std::vector<size_t> heads;                    // [heads] that stand on the head axes
  std::vector<size_t> kv_heads;                 // [kv_heads] that they read
  // The values of a stage, row-major in its shape; null if nobody has them.
  std::function<const std::vector<double>*(capture::Stage, size_t layer)> find;
};

// Whether a stage is only looked at: no other stage is computed from it.
bool is_only_shown(capture::Stage stage);

// One stage of one layer in double, from those stages that its row in the stage table names. Nothing if one of them is
// not there, if it needs heads that are not there, if the model does not have the stage, or if it is one of those that
// are recomputed row by row (verify_layer_rows.h).
std::optional<Bounded> recompute(const StageInputs& inputs, capture::Stage stage, size_t layer);

}  // namespace clearhead::engine
