// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/text/normalizer.h"

namespace clearhead::text {

// The normalization that a SentencePiece model brings with it: a map from short strings to what they become. As in the
// tokenizers library, the text is taken by grapheme clusters: one of less than 6 bytes that begins with a string of the
// map becomes, as a whole, what the shortest such string does; of any other each code point is looked up by itself.
// Source: Kudo and Richardson 2018, SentencePiece, section 3.2; in the details the library's spm_precompiled.
class Precompiled final : public Normalizer {
 public:
  // Bytes of a string that is looked up, and of what it becomes. The longest that Unicode asks for has 33.
  static constexpr size_t kLongestText = 256;

  // map: the bytes of precompiled_charsmap: the size of a double array, the array (32-bit units of darts-clone), and
  // the texts that it points into, each ended by a NUL. All numbers are little-endian. Throws: Error if sizes do not
  // agree, or a string's text lies outside, is no UTF-8 or longer than kLongestText; `where` opens the text.
  Precompiled(std::string_view map, const std::string& where);

  void normalize(const AlignedText& source, AlignedText& result) const override;

  // What the shortest string of the map at the beginning of text becomes.
  std::optional<std::string_view> find(std::string_view text) const;

  // The longest string of the map at the beginning of text that ends with a whole character: its bytes, and what it
  // becomes. This is how SentencePiece and llama.cpp look a text up.
  struct Match {
    size_t length;
    std::string_view becomes;
  };
  std::optional<Match> find_longest(std::string_view text) const;

 private:
  template <class Visit>
  void visit_prefixes(std::string_view text, const Visit& visit) const;
  void check(const std::string& where) const;

  std::vector<uint32_t> units_;
  std::string texts_;
  std::array<bool, 0x80> stays_;  // ASCII that the map does not know; a carriage return may be part of a cluster
};

}  // namespace clearhead::text
