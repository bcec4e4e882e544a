// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/format/gguf_metadata.h"
#include "clearhead/format/tensor_entry.h"

namespace clearhead::format {

// A checked header of a GGUF file. Every tensor lies inside the file, behind the one before it.
struct GgufHeader {
  GgufMetadata metadata;
  std::vector<TensorEntry> entries;  // in the order of their bytes
  std::vector<size_t> by_name;       // places in entries, sorted by name
  std::vector<std::string> warnings;
  size_t data_begin = 0;  // bytes before the data
  uint32_t version = 0;

  // The entry of that name, or null.
  const TensorEntry* find(std::string_view name) const;
};

// Limits beyond which a header is refused.
constexpr size_t kMaxGgufKeyBytes = 65'535;
constexpr size_t kMaxGgufStringBytes = size_t{1} << 30;
constexpr size_t kMaxGgufNameBytes = 63;
constexpr size_t kMaxGgufAxes = 4;
constexpr size_t kMaxGgufAlignment = 65'536;
constexpr size_t kGgufAlignment = 32;  // where the file does not say

// Reads and checks the header of a whole file that is in memory: version 2 or 3, little-endian. Shapes are turned round
// to the order of all others, slowest axis first.
// Throws: Error (failure) at the first rule that is broken, naming the key or tensor.
// Source: the GGUF format and its reference implementation.
GgufHeader parse_gguf_header(std::span<const std::byte> file, std::string_view where);

}  // namespace clearhead::format
