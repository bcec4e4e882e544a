// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/text/pre_tokenizer.h"

namespace clearhead::text {

// Cuts at white space, which is dropped, and makes each punctuation mark a word of its own.
// Source: Devlin et al. 2018; which code points these are: unicode.h.
class BertPreTokenizer final : public PreTokenizer {
 public:
  void split(AlignedText& text, std::vector<Span>& words) const override;
};

}  // namespace clearhead::text
