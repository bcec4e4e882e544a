// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/utf8.h"

namespace clearhead::base {
namespace {

// What the first byte says: how many bytes follow, and which range the second byte must lie in.
struct Lead {
  size_t trailing;
  unsigned char low, high;
  char32_t bits;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {0, 0, 0, byte};
  if (byte >= 0xc2 && byte <= 0xdf) return {1, 0x80, 0xbf, char32_t(byte & 0x1f)};
  if (byte >= 0xe0 && byte <= 0xef) {
    const unsigned char low = byte == 0xe0 ? 0xa0 : 0x80, high = byte == 0xed ? 0x9f : 0xbf;
    return {2, low, high, char32_t(byte & 0x0f)};
  }
  if (byte >= 0xf0 && byte <= 0xf4) {
    const unsigned char low = byte == 0xf0 ? 0x90 : 0x80, high = byte == 0xf4 ? 0x8f : 0xbf;
    return {3, low, high, char32_t(byte & 0x07)};
  }
  return {4, 0, 0, 0};  // never a lead byte
}

}  // namespace

CodePoint decode_utf8(std::string_view text) {
  constexpr char32_t kReplacement = 0xfffd;
  const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  if (lead.trailing > 3) return {kReplacement, 1, false};
  char32_t value = lead.bits;
  for (size_t i = 1; i <= lead.trailing; ++i) {
    const unsigned char low = i == 1 ? lead.low : 0x80, high = i == 1 ? lead.high : 0xbf;
    if (i >= text.size()) return {kReplacement, i, false};
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < low || byte > high) return {kReplacement, i, false};
    value = (value << 6) | (byte & 0x3f);
  }
  return {value, lead.trailing + 1, true};
}

// Only the first byte of a sequence is no continuation byte, whether the sequence is whole or not.
size_t last_utf8_length(std::string_view text) {
  constexpr size_t kLongest = 4;
  for (size_t length = 1; length <= kLongest && length <= text.size(); ++length) {
    const size_t at = text.size() - length;
    if ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) continue;
    return decode_utf8(text.substr(at)).length == length ? length : 1;
  }
  return 1;
}

void append_utf8(std::string& text, char32_t value) {
  const auto put = [&](char32_t bits) { text += static_cast<char>(bits); };
  const auto trail = [&](int shift) { put(0x80 | ((value >> shift) & 0x3f)); };
  if (value < 0x80) return put(value);
  if (value < 0x800) {
    put(0xc0 | (value >> 6));
  } else if (value < 0x10000) {
    put(0xe0 | (value >> 12));
    trail(6);
  } else {
    put(0xf0 | (value >> 18));
    trail(12);
    trail(6);
  }
  trail(0);
}

std::optional<size_t> first_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint next = decode_utf8(text.substr(at));
    if (!next.valid) return at;
    at += next.length;
  }
  return std::nullopt;
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (const auto invalid = first_invalid_utf8(text)) {
    valid += text.substr(0, *invalid);
    text.remove_prefix(*invalid);
    append_utf8(valid, 0xfffd);
    text.remove_prefix(decode_utf8(text).length);
  }
  return valid += text;
}

}  // namespace clearhead::base
