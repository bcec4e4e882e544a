// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/text/normalizer.h"

namespace clearhead::text {

// The text cleaning of BERT, in this order:
// clean_text: controls and U+FFFD are deleted, each white space becomes one plain space.
// space_han: a space on both sides of each Chinese character.
// strip_accents: NFD, then nonspacing marks are deleted. Nothing is composed again, so Hangul stays as its letters.
// lower_case: code point by code point.
// One pass over the text does all four.
// Source: Devlin et al. 2018; byte for byte what the tokenizers library does, its Unicode tables included (unicode.h).
class BertNormalizer final : public Normalizer {
 public:
  struct Config {
    bool clean_text = true;
    bool space_han = true;
    bool strip_accents = true;
    bool lower_case = true;
  };

  explicit BertNormalizer(Config config) : config_(config) {}

  void normalize(const AlignedText& source, AlignedText& result) const override;

 private:
  Config config_;
};

}  // namespace clearhead::text
