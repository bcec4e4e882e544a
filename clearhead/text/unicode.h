// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace clearhead::text {

// What a code point is, as the tokenizers library sees it (scripts/make_unicode_tables.py says how that was found out).
// The parts of that library have tables of different years, and models were trained with them: its punctuation is of
// 2016, its lower case newer than Unicode 15. Where it differs from today's Unicode, the library is right here.
enum Property : uint8_t {
  kWhiteSpace = 1,       // White_Space, U+0085 included, U+180E not
  kPunctuation = 2,      // ASCII punctuation ($+<=>^`|~ too) and category P
  kRemoved = 4,          // deleted by BertNormalizer: all controls but \t \n \r, format, private use, U+FFFD
  kHan = 8,              // BertNormalizer's blocks of Chinese characters
  kNonspacingMark = 16,  // category Mn
  kCased = 32,           // lower case is another code point
  kComposed = 64,        // NFD decomposes or reorders it
  kWord = 128,           // \w of a regular expression
};

// Property bits of all code points in two stages: pages of 256, neighbours that are alike being one page.
class PropertyTable {
 public:
  // bits: of each code point, [0x110000].
  explicit PropertyTable(const std::vector<uint8_t>& bits);

  // The table of what `map` makes of the bits of each code point.
  template <class Map>
  PropertyTable mapped(const Map& map) const {
    PropertyTable result = *this;
    for (Page& page : result.pages_) {
      for (uint8_t& bits : page) bits = static_cast<uint8_t>(map(bits));
    }
    return result;
  }

  // The bits of Property. c must be at most U+10FFFF.
  uint8_t operator[](char32_t c) const { return pages_[page_of_[c >> 8]][c & 0xff]; }

 private:
  using Page = std::array<uint8_t, 256>;

  std::array<uint16_t, 0x1100> page_of_{};
  std::vector<Page> pages_;
};

// The table of Property, built when it is first asked for.
const PropertyTable& property_table();

// Up to four code points by value, without allocation.
class ShortCodePoints {
 public:
  void push_back(char32_t c) { code_points_[size_++] = c; }
  size_t size() const { return size_; }
  char32_t operator[](size_t i) const { return code_points_[i]; }
  const char32_t* begin() const { return code_points_.data(); }
  const char32_t* end() const { return code_points_.data() + size_; }

 private:
  std::array<char32_t, 4> code_points_{};
  size_t size_ = 0;
};

// Canonical decomposition (NFD) of one code point; itself if it has none.
ShortCodePoints decomposition_of(char32_t c);

// Compatibility decomposition (NFKD) of one code point, empty if it is the canonical one.
std::span<const char32_t> compatibility_decomposition_of(char32_t c);

// What NFC makes of two code points that stand side by side, if it joins them.
std::optional<char32_t> composition_of(char32_t first, char32_t second);

// Does NFC join c to some code point before it?
bool joins_back(char32_t c);

// The code points that NFC, NFD, NFKC or NFKD may change, move or join to others; some more than once.
std::vector<char32_t> normalized_code_points();

inline bool is_white_space(char32_t c) { return (property_table()[c] & kWhiteSpace) != 0; }

// \p{L} and \p{N} of a regular expression.
bool is_letter(char32_t c);
bool is_number(char32_t c);

// Is c a mark of any kind (category M)?
bool is_mark(char32_t c);

// Lower case without context (no final sigma); only U+0130 becomes two code points.
ShortCodePoints lower_case_of(char32_t c);

// Canonical combining class; 0 for starters.
uint8_t combining_class_of(char32_t c);

}  // namespace clearhead::text
