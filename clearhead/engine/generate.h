// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/attention/config.h"
#include "clearhead/attention/rounding.h"
#include "clearhead/engine/looker.h"
#include "clearhead/engine/sampler.h"
#include "clearhead/engine/session.h"
#include "clearhead/linear/linear.h"

namespace clearhead::engine {

struct GenerateOptions {
  size_t max_tokens = 128;
  Sampling sampling = {};
  std::vector<std::string> stop = {};       // texts that end the writing; they are left out, and their tokens too
  size_t looks = 0;                         // of each new token: so many heads that look hardest (Looker); 0: none
  std::optional<size_t> memory_limit = {};  // bytes; absent: half of what is free
  // What products with the parameters of the blocks are computed in. bfloat16 is refused where the machine has no
  // instructions for it; Generated::compute_error says what it changes.
  linear::Compute compute = linear::Compute::single;
  // What keys and values are rounded to as they are produced; Generated::cache says what that changed.
  attention::Precision cache = attention::Precision::single;
  // Called with text that will not change any more, whole characters at a time.
  std::function<void(std::string_view text)> on_text = {};
  // Called for each new token that stays, with what the heads looked at when it was chosen: at once, or where a stop
  // text may have begun, when it has not, or where it is part of a character, when that is whole. text: TokenTexts.
  std::function<void(const std::string& text, const std::vector<Look>& looks)> on_token = {};
};

// A text and its continuation.
struct Generated {
  // ids: the new tokens, as few as hold the text. Where a stop text begins inside a token, the last reaches beyond it.
  std::vector<int64_t> prompt_ids, ids;
  // Tokens of the prompt and of what may be written, for which positions are turned that depend on the length.
  size_t declared_len = 0;
  std::string text;                      // of the new ones, up to a stop text
  std::string stopped_by;                // "end", "length", "stop" or "context"
  std::vector<std::vector<Look>> looks;  // [ids]
  // The first new token one of whose logits was no finite number: damaged parameters, and the text means nothing.
  std::optional<size_t> non_finite;
  double prompt_seconds = 0, seconds = 0;
  size_t cache_bytes = 0;                // keys and values of the text
  attention::RoundingError cache_error;  // of all of them; 0 unless they were rounded
  double compute_error = 0;              // of the logits at the first tokens of the prompt (compute_error); 0 in float
};

// Bytes that reading and writing so many tokens together keeps: parameters, that of the vocabulary too, which are
// packed for it, the cache, and what a part of the prompt works in.
size_t writing_bytes(const Session& session, size_t tokens, attention::Precision cache = attention::Precision::single);

// Continues a text token by token. The keys and values of what was read are kept, so each new token costs one token.
// Throws: Error if the model has no head over the vocabulary or sees later tokens, if the prompt has no tokens or fills
// the positions, or if memory does not suffice; base::Interrupted between layers.
Generated generate(const Session& session, std::string_view prompt, const GenerateOptions& options = {});
// The same for a prompt that this session has tokenized already.
Generated generate(const Session& session, const TokenizedText& prompt, const GenerateOptions& options = {});

// How far products in bfloat16 bring the logits behind a text from those in float: the root mean square of the
// difference, as a part of the standard deviation of the logits. Shapes: ids [at least 1].
double compute_error(const model::Transformer& transformer, std::span<const int64_t> ids);

// Prompt and new tokens as one text, for a record or a trace of both: by promise it has the bits of the writing.
TokenizedText whole_text(const Session& session, const TokenizedText& prompt, const Generated& written);

}  // namespace clearhead::engine
