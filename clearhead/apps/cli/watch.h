// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "clearhead/apps/cli/common.h"
#include "clearhead/capture/selection.h"
#include "clearhead/capture/trace.h"
#include "clearhead/engine/session.h"

namespace clearhead::apps {

// Opens a model, with a word on standard error if it takes long.
engine::Session open_model(const std::string& name);
// Opens the model, or the default one for texts, and says on standard error what is odd about its files.
engine::Session open_session(const std::string& model, const std::vector<std::string>& texts = {});

// Runs the session on a text with a progress bar, says what the reader should know about the tokens, and returns what
// was selected; stages of [query, key] are rebuilt when somebody looks (Trace::source). afterwards, if given, says how
// many bytes whoever looks needs for that many tokens (RunOptions::afterwards).
capture::Trace watch(const engine::Session& session, const std::string& text, const capture::Selection& selection,
                     const TextFlags& flags, const std::function<size_t(size_t seq_len)>& afterwards = {});

// Does so for each text of flags and writes what work makes of its trace: as one JSON document (an array with --lines)
// or one picture after the other. Lines run many at a time (engine::Batch), work on all threads. An error names the
// text that it is about.
void watch_each(const engine::Session& session, const capture::Selection& selection, const TextFlags& flags, bool json,
                const std::function<std::string(const capture::Trace&)>& work);

// The tokens of a text, with a word on standard error about what the reader should know.
engine::TokenizedText read_text(const engine::Session& session, const std::string& text, const TextFlags& flags);

// Into a trace file, written while the run goes on.
engine::Session::Recorded watch_into(const engine::Session& session, const engine::TokenizedText& tokenized,
                                     const capture::Selection& selection, const TextFlags& flags,
                                     const std::string& path);

// Throws: Error (usage) naming the flag if path is a file that the model or the text was read from.
void refuse_to_replace_sources(const std::string& flag, const std::string& path, const engine::Session& session,
                               const TextFlags& flags);

// index, if it is below count. Throws: Error (usage) naming the flag and the range.
size_t check_index(const std::string& flag, size_t index, size_t count);

}  // namespace clearhead::apps
