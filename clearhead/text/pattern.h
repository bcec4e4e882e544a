// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/text/aligned_text.h"

namespace clearhead::text {

// What a component looks for in a text: a string or a regular expression.
class Pattern {
 public:
  virtual ~Pattern() = default;

  // The first match at byte `from` or behind it, if there is any. text is valid UTF-8, from at the beginning of a code
  // point.
  virtual std::optional<Span> find(std::string_view text, uint32_t from) const = 0;

  // All matches in text, which is not empty, one after the other. Nothing if finding one by one takes no longer.
  virtual std::optional<std::vector<Span>> find_all(std::string_view) const { return std::nullopt; }
};

// Finds a string that is not empty.
std::unique_ptr<Pattern> literal_pattern(std::string literal);

// Finds what a regular expression of the tokenizers library means: by a matcher of ours if it is well known, else by
// regex.h. Throws: Error if it is not known here; `where` opens the text.
std::unique_ptr<Pattern> regex_pattern(std::string_view expression, std::string_view where);

// The words of GPT-2, of which every text is made.
std::unique_ptr<Pattern> gpt2_pattern();

// Calls visit(span, is_match) for the matches in a stretch of text and what lies between, from left to right; nothing
// between is empty.
template <class Visit>
void for_each_part(const Pattern& pattern, std::string_view text, Span within, const Visit& visit) {
  if (within.size() == 0) return;
  if (const auto matches = pattern.find_all(text.substr(within.begin, within.size()))) {
    uint32_t done = within.begin;
    for (const Span match : *matches) {
      const Span own = {within.begin + match.begin, within.begin + match.end};
      if (done < own.begin) visit(Span{done, own.begin}, false);
      visit(own, true);
      done = own.end;
    }
    if (done < within.end) visit(Span{done, within.end}, false);
    return;
  }
  const std::string_view head = text.substr(0, within.end);
  uint32_t done = within.begin;
  for (uint32_t from = within.begin; from < within.end;) {
    const std::optional<Span> match = pattern.find(head, from);
    if (!match) break;
    if (done < match->begin) visit(Span{done, match->begin}, false);
    visit(*match, true);
    done = match->end;
    from = match->end > match->begin ? match->end : match->end + 1;
  }
  if (done < within.end) visit(Span{done, within.end}, false);
}

}  // namespace clearhead::text
