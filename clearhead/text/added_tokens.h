// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/text/aligned_text.h"
#include "clearhead/text/model.h"
#include "clearhead/text/normalizer.h"
#include "clearhead/text/trie.h"

namespace clearhead::text {

// A string that is one token wherever it stands in a text, whatever normalizer and model would make of it.
struct AddedToken {
  uint32_t id = 0;
  std::string content;
  bool single_word = false;  // only where no word character stands beside it
  bool lstrip = false;       // takes the white space on its left into its span
  bool rstrip = false;       // and on its right
  bool ascii_space = false;  // for these two white space is that of ASCII alone
  bool normalized = false;   // found, itself normalized, in the normalized text; else in the text as it is
  bool special = false;      // left out by decode if asked
};

// A stretch of a text: an added token, or what lies between.
struct Stretch {
  Span span;
  std::optional<uint32_t> id;
};

// Finds a set of added tokens, the leftmost first and of those that begin together the longest.
class AddedTokenFinder {
 public:
  // `pattern` is what is looked for: the token's content, or that normalized. An empty pattern is never found, and of
  // equal ones the first counts. Returns false if it is longer than Trie::kMaxStringBytes.
  bool add(const AddedToken& token, std::string_view pattern);

  // Cuts text, which is valid UTF-8, into stretches. As in the tokenizers library, a token that single_word turned
  // down is passed over, and one that begins in white space which rstrip took already overlaps its neighbour.
  std::vector<Stretch> cut(std::string_view text) const;

 private:
  struct Found {
    uint32_t token;
    Span span;
  };

  std::optional<Found> find(std::string_view text, size_t from) const;

  Trie trie_;
  std::vector<AddedToken> tokens_;
  bool starts_[256] = {};  // is there a pattern that begins with this byte?
  std::optional<char> only_start_;
};

}  // namespace clearhead::text
