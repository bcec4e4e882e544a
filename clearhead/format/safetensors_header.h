// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/format/tensor_entry.h"

namespace clearhead::format {

// A checked header. Every offset lies inside the file, entries follow each other without hole or overlap.
struct SafetensorsHeader {
  std::vector<TensorEntry> entries;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
  std::vector<std::string> warnings;  // what is odd and does no harm
  size_t data_begin = 0;              // bytes before the data: 8 + length of the JSON text

  // The entry of that name, or null.
  const TensorEntry* find(std::string_view name) const;

  // Places in entries, sorted by name.
  std::vector<size_t> by_name;
};

// What may be forgiven.
struct SafetensorsRules {
  bool leading_white_space = false;  // before the first brace, which some writers put there
};

// Limits beyond which a header is refused.
constexpr size_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxHeaderDepth = 16;
constexpr size_t kMaxAxes = 64;
constexpr size_t kMaxMetadata = 65'536;
constexpr size_t kMaxUnknownFields = 64;  // in one tensor

// Bits of one element of any type that the format knows, or nothing for a name outside its table.
std::optional<size_t> safetensors_dtype_bits(std::string_view dtype_name);

// Reads and checks the header of a whole file that is in memory. where names the file in errors.
// Throws: Error (failure) at the first rule that is broken, naming the tensor.
// Source: the format description of the safetensors project.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, std::string_view where,
                                           SafetensorsRules rules = {});

}  // namespace clearhead::format
