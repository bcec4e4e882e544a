// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace clearhead::base {

// One code point at the head of a text. An invalid sequence has valid = false, value U+FFFD and the length of
// its maximal valid prefix (at least 1), as Unicode recommends for substitution.
struct CodePoint {
  char32_t value;
  size_t length;  // bytes
  bool valid;
};

// Reads the first code point. text must not be empty.
// Source: The Unicode Standard, table 3-7 (well-formed UTF-8 byte sequences).
CodePoint decode_utf8(std::string_view text);

// Bytes of the last code point, or of the last of the invalid sequences into which decode_utf8 cuts text from its
// front. text must not be empty.
size_t last_utf8_length(std::string_view text);

// Appends one code point. value must be a scalar value (not a surrogate, at most U+10FFFF).
void append_utf8(std::string& text, char32_t value);

// Byte offset of the first invalid sequence, or nothing if all is well-formed.
std::optional<size_t> first_invalid_utf8(std::string_view text);

// The text with each invalid sequence as U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace clearhead::base
