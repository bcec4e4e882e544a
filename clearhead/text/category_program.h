// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/text/category.h"

namespace clearhead::text {

// The code points that one place of an expression matches.
struct CodePointSet {
  std::bitset<0x80> ascii;
  uint8_t categories = 0;                             // of code points beyond ASCII
  std::vector<std::pair<char32_t, char32_t>> ranges;  // of them, ends included
  bool negated = false;                               // of them; ascii says it as it is

  bool contains(char32_t c, uint8_t bits) const {
    if (c < ascii.size()) return ascii[c];
    if ((bits & kSpace) != 0) return ascii['\v'];
    bool found = (bits & categories) != 0;
    for (const auto& [first, last] : ranges) found = found || (c >= first && c <= last);
    return found != negated;
  }
};

// One step of a compiled expression; the next one follows unless it says otherwise.
struct PatternStep {
  enum class Kind : uint8_t {
    run,        // `least` to `most` code points of a set, as many as there are
    fork,       // goes on at `first`, and at `second` if that fails
    jump,       // to `first`
    ahead,      // what follows matches the steps from `first`; goes on at `second`
    not_ahead,  // the same, if it does not match
    end_of_text,
    match,
  };

  Kind kind;
  uint32_t set = 0;
  uint32_t least = 1, most = 1;
  uint32_t first = 0, second = 0;
};

struct PatternProgram {
  std::vector<PatternStep> steps;
  std::vector<CodePointSet> sets;
};

// Compiles an expression (category_pattern.h). Throws: Error if it is none that is known.
PatternProgram compile_pattern(std::string_view expression);

}  // namespace clearhead::text
