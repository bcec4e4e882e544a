// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clearhead/text/normalizer.h"
#include "clearhead/text/precompiled.h"

namespace clearhead::text {

// What llama.cpp does to a text before WordPiece. Of each code point of the text
//
//   strip_accents   only the first of its canonical decomposition is left (of a Hangul syllable too), and no mark
//                   white space becomes a space; U+0000, U+FFFD and controls are dropped
//                   punctuation, ASCII symbols and Chinese characters stand between spaces
//   lower_case      letters become small ones
//
// by the categories of Unicode 15.1 (category.h).
class GgufBertNormalizer final : public Normalizer {
 public:
  struct Config {
    bool lower_case = true, strip_accents = true;
  };

  explicit GgufBertNormalizer(Config config) : config_(config) {}
  void normalize(const AlignedText& source, AlignedText& result) const override;

 private:
  Config config_;
};

// What llama.cpp does to a text before Unigram: the longest strings that the map knows become what it says, and spaces
// become U+2581. One more is put before the first word (prefix), or runs of them become one before every word and none
// behind the last (merge_spaces). The beginning of a user-defined token, however short, is left as it is.
class GgufUnigramNormalizer final : public Normalizer {
 public:
  struct Config {
    std::optional<Precompiled> map = {};
    std::vector<std::string> user_defined = {};
    bool prefix = false, merge_spaces = false;
  };

  explicit GgufUnigramNormalizer(Config config);
  void normalize(const AlignedText& source, AlignedText& result) const override;

 private:
  Precompiled::Match next(std::string_view text) const;

  Config config_;
};

}  // namespace clearhead::text
