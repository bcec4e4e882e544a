// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "clearhead/text/pattern.h"

namespace clearhead::text {

// Whether PCRE2 compiles an expression for the processor, where it can, or interprets it.
enum class RegexEngine { kCompiled, kInterpreted };

// While one lives, what its thread does with one text: all regular expressions together get the time that one has alone
// for as many characters as they go through. One within another is the other.
class RegexTime {
 public:
  RegexTime();
  ~RegexTime();
  RegexTime(const RegexTime&) = delete;
  RegexTime& operator=(const RegexTime&) = delete;

 private:
  friend class RegexBudget;

  double seconds_ = 0;                // that the characters so far allow
  uint64_t work_ = 0;                 // since the clock was last looked at
  std::optional<double> begun_ = {};  // when it was first looked at
};

// Finds what a regular expression of the tokenizers library means (regex_syntax.h), by PCRE2's engine. A text is first
// written with one byte for each code point, which says in which of the expression's sets it is: so classes are those
// of the library, whatever Unicode PCRE2 knows, and matching is one of bytes.
// Whatever the expression and the text, each call of find and find_all, or all calls for one text where a RegexTime
// lives, take about 1 s and 4 us for each character of processor time of the thread at most (they may go on for as long
// again before it is seen), and at most 64 MB and 512 bytes for each character, never more than 512 MB (and half as
// much while that grows), to note where to go back to. They throw Error if that is not enough for a text. Which texts
// these are depends on how fast the processor is, and on the engine: an interpreted expression is several times as slow
// and needs ten times the memory. What expressions of tokenizers in use need is far below. Throws: Error if the
// expression is not read here or refused by PCRE2; `where` opens the text.
std::unique_ptr<Pattern> regex_by_backtracking(std::string_view expression, std::string_view where,
                                               RegexEngine engine = RegexEngine::kCompiled);

}  // namespace clearhead::text
