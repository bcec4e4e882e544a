// SPDX-License-Identifier: Apache-2.0
#include "clearhead/format/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <utility>

#include "clearhead/base/checked.h"
#include "clearhead/base/error.h"
#include "clearhead/base/utf8.h"
#include "clearhead/format/safetensors_json.h"

namespace clearhead::format {
namespace {

constexpr std::array<std::pair<std::string_view, size_t>, 22> kDTypeBits{
    {{"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
     {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
     {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
     {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}}};

std::string where_tensor(std::string_view where, std::string_view name) {
  return fmt::format("{}, tensor {}", where, base::quoted(name));
}

// The JSON text between the length and the data.
std::string_view header_text(std::span<const std::byte> file, std::string_view where) {
  if (file.size() < 8) {
    base::fail(where, "a safetensors file of at least 8 bytes", fmt::format("{} bytes", file.size()),
               "the file is empty or was cut off");
  }
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  if (length > kMaxHeaderBytes) {
    base::fail(where, fmt::format("a header of at most {} bytes", kMaxHeaderBytes), fmt::format("{} bytes", length),
               "this is no safetensors file or it is damaged");
  }
  if (length > file.size() - 8) {
    base::fail(where, fmt::format("a header of {} bytes", length),
               fmt::format("an end of the file after {} of them", file.size() - 8), "the file was cut off");
  }
  return {reinterpret_cast<const char*>(file.data()) + 8, static_cast<size_t>(length)};
}

// Rules on the bytes of the text that hold before it is read as JSON. The JSON reader would take a NUL for the end and
// skip a byte order mark.
void check_text(std::string_view text, std::string_view where, SafetensorsRules rules) {
  if (const auto at = base::first_invalid_utf8(text)) {
    base::fail(where, "a header in UTF-8", fmt::format("an invalid sequence at byte {} of the header", *at));
  }
  if (const size_t at = text.find('\0'); at != std::string_view::npos) {
    base::fail(where, "a header of JSON padded by spaces", fmt::format("a NUL at byte {} of the header", at));
  }
  const size_t first = rules.leading_white_space ? text.find_first_not_of(" \t\r\n") : 0;
  if (first >= text.size() || text[first] != '{') {
    const std::string found = text.empty() ? "an empty header" : base::quoted(text.substr(0, 1));
    base::fail(where, "a header that begins with {", found, "this is no safetensors file or it is damaged");
  }
}

void check_size(const TensorEntry& entry, std::string_view where) {
  const auto bits = safetensors_dtype_bits(entry.dtype_name);
  if (!bits) return;
  const auto elements = entry.shape.checked_elements();
  const auto total = elements ? base::checked_multiply(*elements, *bits) : std::nullopt;
  if (!total) {
    base::fail(where_tensor(where, entry.name), "a size that fits 64 bits",
               fmt::format("{} {}", entry.dtype_name, entry.shape.text()));
  }
  if (*total % 8 != 0) {
    base::fail(where_tensor(where, entry.name), "a size of whole bytes",
               fmt::format("{} {} of {} bits", entry.dtype_name, entry.shape.text(), *total));
  }
  if (*total / 8 != entry.bytes()) {
    base::fail(where_tensor(where, entry.name),
               fmt::format("{} bytes for {} {}", *total / 8, entry.dtype_name, entry.shape.text()),
               fmt::format("data_offsets [{}, {}]", entry.begin, entry.end));
  }
}

// Entries sorted by offsets must tile the data: the first begins at 0, each where the last one ended, the last ends
// with the file.
void check_offsets(std::span<const TensorEntry> entries, size_t data_bytes, std::string_view where) {
  size_t at = 0;
  for (const TensorEntry& entry : entries) {
    if (entry.end < entry.begin || entry.begin != at) {
      const char* advice = entry.end < entry.begin ? "the end is before the begin"
                           : entry.begin < at      ? "tensors overlap"
                                                   : "there is a hole before it";
      base::fail(where_tensor(where, entry.name), fmt::format("data_offsets that begin at {}", at),
                 fmt::format("[{}, {}]", entry.begin, entry.end), advice);
    }
    if (entry.end > data_bytes) {
      base::fail(where_tensor(where, entry.name), fmt::format("data_offsets within the {} bytes of data", data_bytes),
                 fmt::format("[{}, {}]", entry.begin, entry.end), "the file was cut off");
    }
    at = entry.end;
  }
  if (at != data_bytes) {
    base::fail(where, fmt::format("the file to end with its last tensor, after {} bytes of data", at),
               fmt::format("{} bytes", data_bytes), "bytes that belong to no tensor are not allowed");
  }
}

std::vector<size_t> sorted_by_name(std::span<const TensorEntry> entries, std::string_view where) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return std::string_view(entries[i].name); });
  const auto twin = std::ranges::adjacent_find(order, {}, [&](size_t i) { return std::string_view(entries[i].name); });
  if (twin != order.end()) {
    base::fail(where_tensor(where, entries[*twin].name), "each name once", "the same name again");
  }
  return order;
}

}  // namespace

const TensorEntry* SafetensorsHeader::find(std::string_view name) const {
  const auto name_of_place = [&](size_t i) { return std::string_view(entries[i].name); };
  const auto place = std::ranges::lower_bound(by_name, name, {}, name_of_place);
  return place != by_name.end() && entries[*place].name == name ? &entries[*place] : nullptr;
}

std::optional<size_t> safetensors_dtype_bits(std::string_view dtype_name) {
  for (const auto& [name, bits] : kDTypeBits) {
    if (name == dtype_name) return bits;
  }
  return std::nullopt;
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, std::string_view where,
                                           SafetensorsRules rules) {
  const std::string_view text = header_text(file, where);
  check_text(text, where, rules);
  SafetensorsHeader header = read_safetensors_json(text, where);
  header.data_begin = 8 + text.size();
  std::ranges::stable_sort(header.entries, {}, [](const TensorEntry& e) { return std::pair(e.begin, e.end); });
  header.by_name = sorted_by_name(header.entries, where);
  check_offsets(header.entries, file.size() - header.data_begin, where);
  for (const TensorEntry& entry : header.entries) check_size(entry, where);
  return header;
}

}  // namespace clearhead::format
