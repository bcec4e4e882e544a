// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "clearhead/apps/cli/common.h"
#include "clearhead/capture/selection.h"
#include "clearhead/capture/trace.h"
#include "clearhead/engine/session.h"

namespace clearhead::apps {

// Opens the model, or the default one, with a word on standard error if it takes long.
engine::Session open_session(const std::string& model);

// Runs the session on a text with a progress bar, says what the reader should know about the tokens, and returns what
// was selected.
capture::Trace watch(const engine::Session& session, const std::string& text, const capture::Selection& selection,
                     const TextFlags& flags);

// index, if it is below count. Throws: Error (usage) naming the flag and the range.
size_t check_index(const std::string& flag, size_t index, size_t count);

}  // namespace clearhead::apps
