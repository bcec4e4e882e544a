// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "clearhead/text/model.h"

namespace clearhead::text {

// The fourth component of a tokenizer: adds the special tokens and the type ids that a model expects.
class PostProcessor {
 public:
  virtual ~PostProcessor() = default;

  // pieces: one sequence of text, with spans of the original. Without add_special only type ids are set.
  virtual void process(std::vector<Piece>& pieces, bool add_special) const = 0;
};

}  // namespace clearhead::text
