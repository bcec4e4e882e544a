// SPDX-License-Identifier: Apache-2.0
#include "clearhead/format/gguf_metadata.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "clearhead/base/error.h"

namespace clearhead::format {
namespace {

struct Row {
  std::string_view name;
  size_t bytes;
};

constexpr std::array<Row, 13> kTable = {{{"u8", 1},
                                         {"i8", 1},
                                         {"u16", 2},
                                         {"i16", 2},
                                         {"u32", 4},
                                         {"i32", 4},
                                         {"f32", 4},
                                         {"bool", 1},
                                         {"string", 0},
                                         {"array", 0},
                                         {"u64", 8},
                                         {"i64", 8},
                                         {"f64", 8}}};

template <class T>
T load(std::span<const std::byte> bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return value;
}

// Element i as an integer; nothing if it is none or does not fit.
std::optional<int64_t> integer_at(const GgufValue& value, size_t i) {
  switch (value.type) {
    case GgufType::u8: return load<uint8_t>(value.bytes, i);
    case GgufType::i8: return load<int8_t>(value.bytes, i);
    case GgufType::u16: return load<uint16_t>(value.bytes, i);
    case GgufType::i16: return load<int16_t>(value.bytes, i);
    case GgufType::u32: return load<uint32_t>(value.bytes, i);
    case GgufType::i32: return load<int32_t>(value.bytes, i);
    case GgufType::i64: return load<int64_t>(value.bytes, i);
    case GgufType::u64: {
      const auto wide = load<uint64_t>(value.bytes, i);
      if (std::in_range<int64_t>(wide)) return static_cast<int64_t>(wide);
      return std::nullopt;
    }
    default: return std::nullopt;
  }
}

// A whole number as "2.0": beside an integer that is asked for, 2 would be no fault.
template <class T>
std::string text_of(T number) {
  std::string text = fmt::format("{}", number);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

// Strings stand one after the other, each behind its length; all was checked when the file was read.
std::string_view take_string(std::span<const std::byte>& bytes) {
  const auto length = static_cast<size_t>(load<uint64_t>(bytes, 0));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + sizeof(uint64_t), length);
  bytes = bytes.subspan(sizeof(uint64_t) + length);
  return text;
}

}  // namespace

std::string_view name_of(GgufType type) { return kTable[static_cast<size_t>(type)].name; }
size_t size_of(GgufType type) { return kTable[static_cast<size_t>(type)].bytes; }

std::string GgufValue::text() const {
  if (is_array) return fmt::format("an array of {} {}", count, name_of(type));
  std::span<const std::byte> rest = bytes;
  if (type == GgufType::string) return base::quoted(take_string(rest));
  if (type == GgufType::bool_) return load<uint8_t>(bytes, 0) != 0 ? "true" : "false";
  if (type == GgufType::f32) return text_of(load<float>(bytes, 0));
  if (type == GgufType::f64) return text_of(load<double>(bytes, 0));
  if (type == GgufType::u64) return fmt::format("{}", load<uint64_t>(bytes, 0));
  return fmt::format("{}", *integer_at(*this, 0));
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto place = values_.find(key);
  return place == values_.end() ? nullptr : &place->second;
}

bool GgufMetadata::is_array(std::string_view key) const {
  const GgufValue* value = find(key);
  return value != nullptr && value->is_array;
}

void GgufMetadata::refuse(std::string_view key, std::string_view expected, const GgufValue& found) const {
  base::fail(where_, fmt::format("{} with {}", base::quoted(key), expected), found.text());
}

std::optional<std::string_view> GgufMetadata::find_word(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_array || value->type != GgufType::string) refuse(key, "a string", *value);
  std::span<const std::byte> rest = value->bytes;
  return take_string(rest);
}

std::optional<size_t> GgufMetadata::find_count(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto integer = value->is_array ? std::nullopt : integer_at(*value, 0);
  if (!integer || *integer < 0) refuse(key, "an integer from 0 to 2^63 - 1", *value);
  return static_cast<size_t>(*integer);
}

std::optional<double> GgufMetadata::find_number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::optional<double> number;
  if (!value->is_array && value->type == GgufType::f32) number = load<float>(value->bytes, 0);
  if (!value->is_array && value->type == GgufType::f64) number = load<double>(value->bytes, 0);
  if (const auto integer = value->is_array ? std::nullopt : integer_at(*value, 0))
    number = static_cast<double>(*integer);
  if (!number || !std::isfinite(*number)) refuse(key, "a finite number", *value);
  return number;
}

std::optional<bool> GgufMetadata::find_flag(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array && value->type == GgufType::bool_) return load<uint8_t>(value->bytes, 0) != 0;
  const auto integer = value->is_array ? std::nullopt : integer_at(*value, 0);
  if (integer != 0 && integer != 1) refuse(key, "true or false", *value);
  return *integer == 1;
}

std::optional<std::vector<std::string_view>> GgufMetadata::find_words(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array || value->type != GgufType::string) refuse(key, "an array of strings", *value);
  std::vector<std::string_view> words;
  words.reserve(value->count);
  std::span<const std::byte> rest = value->bytes;
  for (size_t i = 0; i < value->count; ++i) words.push_back(take_string(rest));
  return words;
}

std::optional<std::vector<float>> GgufMetadata::find_numbers(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array || value->type != GgufType::f32) refuse(key, "an array of f32", *value);
  std::vector<float> numbers(value->count);
  if (!numbers.empty()) std::memcpy(numbers.data(), value->bytes.data(), numbers.size() * sizeof(float));
  return numbers;
}

std::optional<std::vector<int64_t>> GgufMetadata::find_integers(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<int64_t> integers(value->count);
  for (size_t i = 0; i < value->count; ++i) {
    const auto integer = integer_at(*value, i);
    if (!integer) refuse(key, "integers", *value);
    integers[i] = *integer;
  }
  return integers;
}

std::optional<std::vector<bool>> GgufMetadata::find_flags(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<bool> flags(value->count);
  for (size_t i = 0; i < value->count; ++i) {
    const auto flag =
        value->type == GgufType::bool_ ? std::optional<int64_t>(load<uint8_t>(value->bytes, i)) : integer_at(*value, i);
    if (!value->is_array || (flag != 0 && flag != 1)) refuse(key, "an array of true and false", *value);
    flags[i] = flag == 1;
  }
  return flags;
}

std::string_view GgufMetadata::word(std::string_view key) const {
  if (const auto found = find_word(key)) return *found;
  base::fail(where_, fmt::format("{} in the metadata", base::quoted(key)), "none");
}

size_t GgufMetadata::count(std::string_view key) const {
  if (const auto found = find_count(key)) return *found;
  base::fail(where_, fmt::format("{} in the metadata", base::quoted(key)), "none");
}

}  // namespace clearhead::format
