// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <optional>
#include <string_view>
#include <vector>

namespace clearhead::text {

// A set of code points, as rising stretches that do not touch.
class CodeSet {
 public:
  struct Range {
    char32_t first, last;
    auto operator<=>(const Range&) const = default;
  };

  CodeSet() = default;
  CodeSet(char32_t first, char32_t last) : ranges_{{first, last}} {}

  // first must be at most last, last at most U+10FFFF.
  void add(char32_t first, char32_t last);
  void add(const CodeSet& other);

  // Behind all that are there, and not touching them.
  void append(char32_t first, char32_t last);

  CodeSet complement() const;
  CodeSet intersection(const CodeSet& other) const;

  bool contains(char32_t c) const;
  bool contains(const CodeSet& other) const { return other.intersection(complement()).ranges_.empty(); }
  const std::vector<Range>& ranges() const { return ranges_; }
  bool operator==(const CodeSet&) const = default;

 private:
  std::vector<Range> ranges_;
};

// The code points that have a property, as the regular expressions of the tokenizers library know it; nothing if the
// name is not known here. Names count without case, spaces, hyphens and underlines; those of [:name:] begin with a
// colon.
std::optional<CodeSet> code_set_of(std::string_view name);

}  // namespace clearhead::text
