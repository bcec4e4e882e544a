// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "clearhead/text/code_set.h"

namespace clearhead::text {

// Reads the characters of a regular expression: escapes, properties and classes. regex_syntax.h has the whole.
class RegexReader {
 public:
  RegexReader(std::string_view expression, std::string_view where) : text_(expression), where_(where) {}

  bool done() const { return at_ >= text_.size(); }
  bool next_is(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  // Passes what comes next if it is that.
  bool take(std::string_view what);

  // The next code point, which must be there.
  char32_t take();

  // ASCII digits as a number, nothing if there are none. Throws: Error if it is above 1000.
  std::optional<size_t> take_number();

  // Passes all up to a character and the character. Throws: Error if it does not come.
  std::string_view take_until(char end);

  // Behind a backslash: one code point or a set. Nothing, and nothing passed, if it means something else. What a word
  // character is depends, in the library, on whether it is asked for in a class.
  using Escape = std::variant<std::monostate, char32_t, CodeSet>;
  Escape take_escape(bool in_class);

  // Behind a [ : the class and its ]. any_case: letters stand for both cases.
  CodeSet take_class(bool any_case, size_t depth);

  // Both cases of ASCII letters, and the two signs that fold into one. Throws: Error if a set has what else has cases.
  CodeSet with_both_cases(const CodeSet& set) const;

  // Throws: Error "expected a regular expression that is known here; found <what> at byte ...".
  [[noreturn]] void fail(std::string_view what) const;

  size_t at() const { return at_; }
  void go_back(size_t at) { at_ = at; }

 private:
  std::optional<CodeSet> take_kind(bool in_class);
  std::optional<char32_t> take_control();
  char32_t take_hex();
  CodeSet take_property(bool inverted, bool in_class);
  bool take_posix(CodeSet& set);
  Escape take_class_item();
  void take_class_part(bool any_case, size_t depth, CodeSet& set);

  std::string_view text_;
  std::string where_;
  size_t at_ = 0;
};

}  // namespace clearhead::text
