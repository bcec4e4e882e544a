// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "clearhead/capture/selection.h"
#include "clearhead/capture/trace.h"
#include "clearhead/model/transformer.h"

namespace clearhead::engine {

// The selection without stages that the model does not have.
capture::Selection with_stages_of(const model::Transformer& transformer, const capture::Selection& selection);

// The selection with its stages of [batch, heads, query, key] exchanged for what they can be rebuilt from, and without
// stages that the model does not have.
capture::Selection rebuildable(const model::Transformer& transformer, const capture::Selection& selection);

// Lets a trace that was recorded so show these stages too, in all its layers; those of another shape are left alone.
void attach_rebuilt(const model::Transformer& transformer, const std::vector<capture::Stage>& stages,
                    capture::Trace& trace);

}  // namespace clearhead::engine
