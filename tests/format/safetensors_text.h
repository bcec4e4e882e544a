// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "clearhead/format/safetensors_header.h"
#include "tests/support/error_text.h"

namespace clearhead::tests {

// The bytes of a safetensors file: length, header, data.
inline std::string safetensors_bytes(std::string_view header, std::string_view data = {}) {
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(uint64_t{header.size()} >> (8 * i));
  return length + std::string(header) + std::string(data);
}

inline format::SafetensorsHeader parse_header(std::string_view file, format::SafetensorsRules rules = {}) {
  return format::parse_safetensors_header(std::as_bytes(std::span(file.data(), file.size())), "\"m\"", rules);
}

// What parsing complains of.
inline std::string complaint(std::string_view file) {
  return error_text([&] { parse_header(file); });
}
inline std::string complaint_of_header(std::string_view header, std::string_view data = {}) {
  return complaint(safetensors_bytes(header, data));
}

}  // namespace clearhead::tests
