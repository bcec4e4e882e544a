// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/base64.h"

#include <fmt/format.h>

#include <cstdint>

#include "clearhead/base/error.h"

namespace clearhead::text {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Characters of one group, and bits of one character.
constexpr size_t kGroup = 4, kBits = 6;

}  // namespace

std::string decode_base64(std::string_view text, const std::string& where) {
  if (text.size() % kGroup != 0) base::fail(where, "base64", fmt::format("{} characters", text.size()));
  size_t digits = text.size();
  while (digits > 0 && text.size() - digits < 2 && text[digits - 1] == '=') --digits;
  std::string bytes;
  bytes.reserve(text.size() / kGroup * 3);
  uint32_t bits = 0, count = 0;
  for (size_t i = 0; i < digits; ++i) {
    const size_t digit = kDigits.find(text[i]);
    if (digit == std::string_view::npos) {
      base::fail(where, "base64", fmt::format("{} at character {}", base::quoted(text.substr(i, 1)), i));
    }
    bits = bits << kBits | static_cast<uint32_t>(digit);
    count += kBits;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  if ((bits & ((1u << count) - 1)) != 0) base::fail(where, "base64", "bits behind the last byte");
  return bytes;
}

std::string encode_base64(std::string_view bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view group = bytes.substr(at, 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0);
    for (size_t i = 0; i < kGroup; ++i) {
      text += i <= group.size() ? kDigits[bits >> (kGroup - 1 - i) * kBits & 0x3f] : '=';
    }
  }
  return text;
}

}  // namespace clearhead::text
