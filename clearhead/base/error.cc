// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/error.h"

#include <fmt/format.h>

#include "clearhead/base/utf8.h"

namespace clearhead::base {
namespace {

std::string complaint(std::string_view where, std::string_view expected, std::string_view found,
                      std::string_view advice) {
  std::string text = fmt::format("[{}] expected {}; found {}", where, expected, found);
  if (!advice.empty()) text += fmt::format("; {}", advice);
  return text;
}

// Characters that would break the line, steer the terminal or turn the direction of the text around them.
bool is_unsafe_to_print(char32_t value) {
  return value < 0x20 || (value >= 0x7f && value < 0xa0) || value == 0x061c || value == 0x200e || value == 0x200f ||
         (value >= 0x2028 && value <= 0x202e) || (value >= 0x2066 && value <= 0x2069);
}

}  // namespace

void fail(std::string_view where, std::string_view expected, std::string_view found, std::string_view advice) {
  throw Error(Fault::failure, complaint(where, expected, found, advice));
}

void refuse(std::string_view where, std::string_view expected, std::string_view found, std::string_view advice) {
  throw Error(Fault::usage, complaint(where, expected, found, advice));
}

std::string quoted(std::string_view text, size_t max_bytes) {
  std::string result = "\"";
  for (size_t at = 0; at < text.size();) {
    if (at >= max_bytes) return result + "...\"";
    const CodePoint next = decode_utf8(text.substr(at));
    if (next.valid && !is_unsafe_to_print(next.value)) {
      result += text.substr(at, next.length);
    } else {
      for (size_t i = 0; i < next.length; ++i) result += fmt::format("\\x{:02x}", (unsigned char)(text[at + i]));
    }
    at += next.length;
  }
  return result + "\"";
}

}  // namespace clearhead::base
