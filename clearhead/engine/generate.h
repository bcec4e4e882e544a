// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/engine/sampler.h"
#include "clearhead/engine/session.h"

namespace clearhead::engine {

// Where one head looked when a token was chosen.
struct Look {
  size_t layer, head;
  size_t key;  // token of prompt and continuation together
  float weight;
};

struct GenerateOptions {
  size_t max_tokens = 128;
  Sampling sampling = {};
  std::vector<std::string> stop = {};  // texts that end the writing; they are left out
  size_t looks = 0;                    // of each new token: so many heads that look hardest; 0: none are looked for
  std::optional<size_t> memory_limit = {};  // bytes; absent: half of what is free
  // Called with text that will not change any more, whole characters at a time.
  std::function<void(std::string_view text)> on_text = {};
  // Called after each new token, with what the heads looked at when it was chosen.
  std::function<void(const std::string& text, const std::vector<Look>& looks)> on_token = {};
};

// A text and its continuation.
struct Generated {
  std::vector<int64_t> prompt_ids, ids;  // ids: the new ones
  std::string text;                      // of the new ones
  std::string stopped_by;                // "end", "length", "stop" or "context"
  std::vector<std::vector<Look>> looks;  // [ids]
  double prompt_seconds = 0, seconds = 0;
};

// Continues a text token by token. The keys and values of what was read are kept, so each new token costs one token.
// Among the heads, those are shown whose strongest weight on a token that is neither special nor the first nor the one
// that looks is largest; a layer gives at most one.
// Throws: Error if the model has no head over the vocabulary or sees later tokens, if the prompt has no tokens or fills
// the positions, or if memory does not suffice; base::Interrupted between layers.
Generated generate(const Session& session, std::string_view prompt, const GenerateOptions& options = {});

}  // namespace clearhead::engine
