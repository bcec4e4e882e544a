// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/gguf_normalizer.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "clearhead/base/utf8.h"
#include "clearhead/text/category.h"
#include "clearhead/text/unicode.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

// The first code point of the canonical decomposition in Unicode 15.1. The table at hand, which is older, lacks one.
char32_t first_of_decomposition(char32_t c) {
  constexpr char32_t kDivesAkuruO = 0x11938, kDivesAkuruE = 0x11935;
  return c == kDivesAkuruO ? kDivesAkuruE : decomposition_of(c)[0];
}

// The table at hand, which is newer, knows capitals that 15.1 had not assigned.
char32_t lower_of(char32_t c, uint8_t bits) { return bits == 0 ? c : lower_case_of(c)[0]; }

bool stands_alone(char32_t c, uint8_t bits) {
  return (bits & kPunctuationMark) != 0 || (c < 0x7f && (bits & kSymbol) != 0) || (property_table()[c] & kHan) != 0;
}

}  // namespace

void GgufBertNormalizer::normalize(const AlignedText& source, AlignedText& result) const {
  const PropertyTable& categories = category_table();
  const std::string_view text = source.bytes();
  std::string written;
  for (uint32_t at = 0; at < text.size();) {
    const ValidCodePoint here = code_point_at(text, at);
    const Span span = {at, at + static_cast<uint32_t>(here.length)};
    at = span.end;
    const char32_t c = config_.strip_accents ? first_of_decomposition(here.value) : here.value;
    const uint8_t bits = categories[c];
    written.clear();
    if ((bits & kSpace) != 0) {
      written = " ";
    } else if (c == 0 || c == 0xfffd || (bits & kControlCode) != 0 || (config_.strip_accents && (bits & kMark) != 0)) {
      continue;
    } else {
      const bool alone = stands_alone(c, bits);
      if (alone) written = " ";
      base::append_utf8(written, config_.lower_case ? lower_of(c, bits) : c);
      if (alone) written += ' ';
    }
    const std::string_view own = text.substr(span.begin, span.size());
    written == own ? void(result.keep(own, source, span.begin)) : result.replace(written, source.original(span));
  }
}

GgufUnigramNormalizer::GgufUnigramNormalizer(Config config) : config_(std::move(config)) {
  std::ranges::sort(config_.user_defined);
}

// What stands at the beginning of text, which is not empty.
Precompiled::Match GgufUnigramNormalizer::next(std::string_view text) const {
  size_t length = 0;
  const auto share = [&](const std::string& token) {
    const auto both = std::ranges::mismatch(token, text);
    length = std::max(length, static_cast<size_t>(both.in1 - token.begin()));
  };
  // The token with the longest beginning of the text is one of its neighbours in the order of all.
  const auto behind = std::ranges::lower_bound(config_.user_defined, text);
  if (behind != config_.user_defined.end()) share(*behind);
  if (behind != config_.user_defined.begin()) share(*std::prev(behind));
  // Where a token parts from the text within a character, the rest of that is no character.
  while (length > 0 && length < text.size() && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  if (length == 0 && config_.map) {
    if (const auto found = config_.map->find_longest(text)) return *found;
  }
  if (length == 0) length = code_point_at(text, 0).length;
  return {length, text.substr(0, length)};
}

void GgufUnigramNormalizer::normalize(const AlignedText& source, AlignedText& result) const {
  constexpr std::string_view kMark = "\u2581";
  const std::string_view text = source.bytes();
  bool prefixed = !config_.prefix, in_word = false;
  std::string written;
  for (uint32_t at = 0; at < text.size();) {
    const Precompiled::Match match = next(text.substr(at));
    const Span span = {at, at + static_cast<uint32_t>(match.length)};
    at = span.end;
    written.clear();
    for (const char byte : match.becomes) {
      if (byte == ' ') {
        in_word = false;
        if (!config_.merge_spaces) written += kMark;
        continue;
      }
      if (!in_word && (!prefixed || config_.merge_spaces)) {
        written += kMark;
        prefixed = true;
      }
      in_word = true;
      written += byte;
    }
    const std::string_view own = text.substr(span.begin, span.size());
    if (written == own) {
      result.keep(own, source, span.begin);
    } else if (!written.empty()) {
      result.replace(written, source.original(span));
    }
  }
}

}  // namespace clearhead::text
