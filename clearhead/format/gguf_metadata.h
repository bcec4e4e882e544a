// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clearhead::format {

// Types of a metadata value, with their numbers in a file.
enum class GgufType : uint32_t { u8, i8, u16, i16, u32, i32, f32, bool_, string, array, u64, i64, f64 };

// "u8", ..., "bool", "string", "array", ...
std::string_view name_of(GgufType type);

// Bytes of a value; 0 for strings and arrays, whose size stands in the file.
size_t size_of(GgufType type);

// One value where it stands in a file, checked to lie in it. For an array, type is that of the elements.
struct GgufValue {
  GgufType type = GgufType::u8;
  bool is_array = false;
  size_t count = 1;
  std::span<const std::byte> bytes;

  // "u32 3", "a string of 9 bytes", "an array of 5 i32"
  std::string text() const;
};

// The metadata of a GGUF file. Writers choose freely among the types of numbers, so a value is taken as what it is
// asked for as long as nothing is lost; otherwise an Error names key and value. Keys remember nothing: what a model
// does not ask for is of no effect on it by the format's rules.
class GgufMetadata {
 public:
  explicit GgufMetadata(std::string where = "") : where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  const std::map<std::string, GgufValue, std::less<>>& values() const { return values_; }
  bool contains(std::string_view key) const { return values_.contains(key); }
  bool is_array(std::string_view key) const;  // false also if the key is absent
  // False if the key is there already.
  bool add(std::string key, const GgufValue& value) { return values_.emplace(std::move(key), value).second; }

  // Nothing if the key is absent.
  // Throws: Error (failure) naming the key if its value is of another kind or outside the range.
  std::optional<std::string_view> find_word(std::string_view key) const;
  std::optional<size_t> find_count(std::string_view key) const;   // an integer, not negative
  std::optional<double> find_number(std::string_view key) const;  // an integer or a finite f32 or f64
  std::optional<bool> find_flag(std::string_view key) const;      // a bool, or an integer 0 or 1
  std::optional<std::vector<std::string_view>> find_words(std::string_view key) const;
  std::optional<std::vector<float>> find_numbers(std::string_view key) const;  // an array of f32
  // An array of integers, or one integer alone.
  std::optional<std::vector<int64_t>> find_integers(std::string_view key) const;
  std::optional<std::vector<bool>> find_flags(std::string_view key) const;  // an array of bools, or of integers 0 or 1

  // As above. Throws: Error (failure) also if the key is absent.
  std::string_view word(std::string_view key) const;
  size_t count(std::string_view key) const;

 private:
  const GgufValue* find(std::string_view key) const;
  [[noreturn]] void refuse(std::string_view key, std::string_view expected, const GgufValue& found) const;

  std::string where_;
  std::map<std::string, GgufValue, std::less<>> values_;
};

}  // namespace clearhead::format
