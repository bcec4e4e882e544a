// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <optional>

#include "clearhead/capture/selection.h"
#include "clearhead/model/transformer.h"

namespace clearhead::engine {

// More bytes than can be counted.
inline constexpr size_t kUncountable = std::numeric_limits<size_t>::max();

// Bytes that a run of seq_len tokens keeps in memory, each perhaps kUncountable:
//
//   parameters   what is packed; embedding tables stay in their file
//   recorded     4 bytes per element of every selected stage, layer and head that the model has
//   passing      4 bytes per element of what the run works in: a block's inputs and outputs, its packed keys and
//   values,
//                and what is only made because somebody looks
struct RunBytes {
  size_t parameters = 0, recorded = 0, passing = 0;

  size_t total() const;
};
RunBytes estimate_run(const model::Transformer& transformer, size_t seq_len, const capture::Selection& selection);

// Bytes that verifying a text of seq_len tokens (verify.h) works in, beside the model and the trace: values of one
// layer and what is before it in double, one stage recomputed with its bounds, and some rows of scores; perhaps
// kUncountable.
size_t verify_bytes(const model::Transformer& transformer, size_t seq_len);

// Bytes that programs could get without swapping, as the system says; nothing if it does not say.
std::optional<size_t> free_memory();

}  // namespace clearhead::engine
