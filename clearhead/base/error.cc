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
    const bool control = next.value < 0x20 || (next.value >= 0x7f && next.value < 0xa0);
    if (next.valid && !control) {
      result += text.substr(at, next.length);
    } else {
      for (size_t i = 0; i < next.length; ++i) result += fmt::format("\\x{:02x}", (unsigned char)(text[at + i]));
    }
    at += next.length;
  }
  return result + "\"";
}

}  // namespace clearhead::base
