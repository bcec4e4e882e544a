// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "clearhead/text/aligned_text.h"

namespace clearhead::text {

// The second component of a tokenizer: cuts normalized text into words; no token crosses the end of a word.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;

  // Cuts each of `words` (stretches of text in rising order; at first the whole text) further. A component may rewrite
  // text, as byte-level ones do, and then moves the words with it.
  virtual void split(AlignedText& text, std::vector<Span>& words) const = 0;
};

}  // namespace clearhead::text
