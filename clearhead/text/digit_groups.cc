// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/digit_groups.h"

#include "clearhead/text/category.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {

void DigitGroups::split(AlignedText& text, std::vector<Span>& words) const {
  constexpr size_t kGroup = 3;
  const PropertyTable& categories = category_table();
  const auto is_digit = [&](char32_t c) {
    return cut_ == Cut::before ? c >= '0' && c <= '9' : (categories[c] & kNumber) != 0;
  };
  std::vector<Span> cut;
  std::vector<uint32_t> places;  // of the digits of a run, and its end
  for (const Span word : words) {
    uint32_t begin = word.begin;
    const auto cut_at = [&](uint32_t place) {
      if (place > begin) cut.push_back({begin, place});
      begin = place;
    };
    for (uint32_t at = word.begin; at < word.end;) {
      places.assign(1, at);
      while (at < word.end) {
        const ValidCodePoint here = code_point_at(text.bytes(), at);
        if (!is_digit(here.value)) break;
        at += static_cast<uint32_t>(here.length);
        places.push_back(at);
      }
      const size_t count = places.size() - 1;
      for (size_t i = count % kGroup; i <= count && count > 0; i += kGroup) {
        if (cut_ == Cut::behind ? i > 0 : i < count) cut_at(places[i]);
      }
      if (at < word.end) at += static_cast<uint32_t>(code_point_at(text.bytes(), at).length);
    }
    cut_at(word.end);
  }
  words.swap(cut);
}

}  // namespace clearhead::text
