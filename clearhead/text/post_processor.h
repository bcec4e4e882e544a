// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "clearhead/text/model.h"

namespace clearhead::text {

// The fourth component of a tokenizer: adds the special tokens and the type ids that a model expects.
class PostProcessor {
 public:
  virtual ~PostProcessor() = default;

  // What pieces stand for: spans of this text, or nothing if no account was kept of their places.
  using Original = std::optional<std::string_view>;

  // pieces: one sequence of text. Without add_special only type ids are set and spans trimmed.
  virtual void process(std::vector<Piece>& pieces, const Original& original, bool add_special) const = 0;
};

}  // namespace clearhead::text
