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

  // Does it, as its last step, write each byte as a character (byte_level.h)?
  virtual bool writes_bytes() const { return false; }

  // Does as split, but leaves that last step out.
  virtual void split_unwritten(AlignedText& text, std::vector<Span>& words) const { split(text, words); }

  // Do its words depend on where in the original text they came from?
  virtual bool asks_origins() const { return false; }
};

}  // namespace clearhead::text
