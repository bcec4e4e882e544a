// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/simple_pre_tokenizers.h"

#include "clearhead/text/unicode.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {

void PreTokenizerSequence::split(AlignedText& text, std::vector<Span>& words) const {
  for (const auto& step : steps_) step->split(text, words);
}

void WhitespaceSplit::split(AlignedText& text, std::vector<Span>& words) const {
  const PropertyTable& table = property_table();
  std::vector<Span> cut;
  cut.reserve(words.size() + text.bytes().size() / 5);
  for (const Span whole : words) {
    uint32_t word = whole.begin;
    for (uint32_t at = whole.begin; at < whole.end;) {
      const ValidCodePoint here = code_point_at(text.bytes(), at);
      const auto next = at + static_cast<uint32_t>(here.length);
      if ((table[here.value] & kWhiteSpace) != 0) {
        if (word < at) cut.push_back({word, at});
        word = next;
      }
      at = next;
    }
    if (word < whole.end) cut.push_back({word, whole.end});
  }
  words.swap(cut);
}

}  // namespace clearhead::text
