// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <string_view>

namespace clearhead::text {

// One code point of a text that is known to be valid UTF-8.
struct ValidCodePoint {
  char32_t value;
  size_t length;  // bytes
};

// The code point that begins at byte `at`, which must be before the end. A string has a zero there that hides a read
// behind it from sanitizers, so builds with assertions end.
inline ValidCodePoint code_point_at(std::string_view text, size_t at) {
  assert(at < text.size());
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  const auto trail = [&](size_t i) { return byte(i) & 0x3f; };
  const char32_t lead = byte(0);
  assert((lead & 0xc0) != 0x80);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xe0) return {(lead & 0x1f) << 6 | trail(1), 2};
  if (lead < 0xf0) return {(lead & 0x0f) << 12 | trail(1) << 6 | trail(2), 3};
  return {(lead & 0x07) << 18 | trail(1) << 12 | trail(2) << 6 | trail(3), 4};
}

// The code point that ends before byte `end`, which must not be 0.
inline ValidCodePoint code_point_before(std::string_view text, size_t end) {
  assert(end > 0 && end <= text.size());
  size_t at = end - 1;
  while ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return code_point_at(text, at);
}

}  // namespace clearhead::text
