// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/bert_pre_tokenizer.h"

#include <array>

#include "clearhead/text/unicode.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

constexpr unsigned kCuts = kWhiteSpace | kPunctuation;

void split_one(std::string_view text, Span whole, std::vector<Span>& words) {
  const PropertyTable& table = property_table();
  std::array<uint8_t, 0x80> ascii;
  for (char32_t c = 0; c < ascii.size(); ++c) ascii[c] = table[c] & kCuts;
  uint32_t word = whole.begin, at = whole.begin;  // word: where the word that at is in began
  while (at < whole.end) {
    const auto byte = static_cast<unsigned char>(text[at]);
    unsigned bits;
    uint32_t length = 1;
    if (byte < 0x80) {
      bits = ascii[byte];
    } else {
      const ValidCodePoint here = code_point_at(text, at);
      bits = table[here.value] & kCuts;
      length = static_cast<uint32_t>(here.length);
    }
    if (bits != 0) {
      if (word < at) words.push_back({word, at});
      if ((bits & kPunctuation) != 0) words.push_back({at, at + length});
      word = at + length;
    }
    at += length;
  }
  if (word < at) words.push_back({word, at});
}

}  // namespace

void BertPreTokenizer::split(AlignedText& text, std::vector<Span>& words) const {
  std::vector<Span> cut;
  cut.reserve(text.bytes().size() / 4 + words.size());
  for (const Span whole : words) split_one(text.bytes(), whole, cut);
  words.swap(cut);
}

}  // namespace clearhead::text
