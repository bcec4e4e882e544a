// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/text/pre_tokenizer.h"

namespace clearhead::text {

// Cuts where the script changes. Hiragana and Katakana count as Han; a space, and what Unicode has not assigned, goes
// with what is before it, and at the beginning of a word is dropped. Which script a code point has is what the
// tokenizers library says (scripts/make_break_tables.py). Source: the pre-tokenizer UnicodeScripts of that library,
// after SentencePiece.
class UnicodeScripts final : public PreTokenizer {
 public:
  void split(AlignedText& text, std::vector<Span>& words) const override;
};

}  // namespace clearhead::text
