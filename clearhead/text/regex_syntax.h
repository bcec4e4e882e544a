// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clearhead/text/code_set.h"

namespace clearhead::text {

// A regular expression as it was read: its frame (groups, alternatives, repetition, looking around) in the syntax of
// PCRE2, and between the frame's parts the sets of code points that one character must be of.
struct RegexProgram {
  struct Item {
    std::string frame;
    size_t set = kNoSet;  // of sets, where it is one
  };

  static constexpr size_t kNoSet = SIZE_MAX;

  std::vector<Item> items;
  std::vector<CodeSet> sets;    // each once
  bool repeats_groups = false;  // more often than once: of more than one character at a time
};

// The longest expression, and the deepest nesting, that is read.
constexpr size_t kMaxRegexBytes = 8192, kMaxRegexDepth = 64;

// Reads an expression in the syntax of the tokenizers library, which is Oniguruma's for Ruby: ^ and $ are of lines,
// (?m) lets the dot match line ends, && intersects classes, {,n} begins at 0. What is not read here is refused by name:
// going back to groups, absent groups, conditions, calls, \G, \K, \X, (?x), octal numbers, and with (?i) all but ASCII
// and what Unicode folds into several letters. Throws: Error; `where` opens the text.
RegexProgram read_regex(std::string_view expression, std::string_view where);

}  // namespace clearhead::text
