// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/format/gguf.h"
#include "tests/support/error_text.h"

namespace clearhead::tests {

// The bytes of a number as they stand in a file.
template <class T>
std::string le(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

inline std::string gguf_string(std::string_view text) { return le(uint64_t{text.size()}).append(text); }

// A GGUF file in the making; every part may be made wrong.
struct GgufBytes {
  std::string magic = "GGUF";
  uint32_t version = 3;
  uint64_t num_tensors = 0, num_values = 0;  // as the file says
  std::string values = {}, tensors = {}, data = {};
  size_t alignment = 32;  // where the data really begins

  GgufBytes& value(std::string_view key, uint32_t type, const std::string& bytes) {
    values += gguf_string(key) + le(type) + bytes;
    ++num_values;
    return *this;
  }
  GgufBytes& u32(std::string_view key, uint32_t number) { return value(key, 4, le(number)); }
  GgufBytes& u16(std::string_view key, uint16_t number) { return value(key, 2, le(number)); }
  GgufBytes& word(std::string_view key, std::string_view text) { return value(key, 8, gguf_string(text)); }
  GgufBytes& array(std::string_view key, uint32_t type, uint64_t count, const std::string& bytes) {
    return value(key, 9, le(type) + le(count) + bytes);
  }
  // sizes: fastest first.
  GgufBytes& tensor(std::string_view name, const std::vector<int64_t>& sizes, uint32_t type, uint64_t offset) {
    tensors += gguf_string(name) + le(static_cast<uint32_t>(sizes.size()));
    for (int64_t size : sizes) tensors += le(size);
    tensors += le(type) + le(offset);
    ++num_tensors;
    return *this;
  }

  std::string text() const {
    std::string file = magic + le(version) + le(num_tensors) + le(num_values) + values + tensors;
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data;
  }
};

inline format::GgufFile read_gguf(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return format::GgufFile::read({first, first + text.size()}, "\"m\"");
}

// What is wrong with these bytes.
inline std::string gguf_complaint(std::string_view text) {
  return error_text([&] { read_gguf(text); });
}
inline std::string gguf_complaint(const GgufBytes& file) { return gguf_complaint(file.text()); }

}  // namespace clearhead::tests
