// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clearhead::model {

// A word of a config and what it means here: {{"gelu", Activation::gelu}, ...}.
template <class Value>
using Meaning = std::pair<std::string_view, Value>;

// A config.json, read by type. It remembers which keys were asked for: refuse_unread() refuses every other key by
// name unless harmless_keys() (harmless_keys.h) lists it, so that no setting that changes the computation is ever
// ignored. A null counts as an absent key.
class ConfigJson {
 public:
  // where names the file in errors. Throws: Error for anything but one JSON object without repeated keys.
  ConfigJson(std::string_view text, std::string where);
  ~ConfigJson();
  ConfigJson(ConfigJson&&) noexcept;
  ConfigJson& operator=(ConfigJson&&) noexcept;

  const std::string& where() const { return where_; }

  // Throws: Error naming the key if it is absent (without fallback), of another type or out of its range.
  static constexpr size_t kMaxCount = size_t{1} << 31;
  std::string word(std::string_view key, std::optional<std::string_view> fallback = std::nullopt);
  size_t count(std::string_view key, std::optional<size_t> fallback = std::nullopt);  // 0 to kMaxCount
  float number(std::string_view key, std::optional<float> fallback = std::nullopt);   // finite
  bool flag(std::string_view key, bool fallback);

  // Nothing if the key is absent. The object remembers its own keys: its refuse_unread is for the caller to call.
  // Throws: Error naming the key if it is of another type.
  std::optional<ConfigJson> object(std::string_view key);
  std::optional<std::vector<std::string>> words(std::string_view key);
  std::optional<std::vector<double>> numbers(std::string_view key);
  std::vector<int64_t> integers(std::string_view key);  // a list or one alone; none if the key is absent
  bool contains(std::string_view key);
  bool is_null(std::string_view key) const;  // for keys of which null is a value

  // What a word means. Throws: Error naming the key, the words that are known and the one found.
  template <class Value, size_t size>
  Value meaning(std::string_view key, const Meaning<Value> (&table)[size],
                std::optional<std::string_view> fallback = std::nullopt) {
    const std::string found = word(key, fallback);
    std::string known;
    for (const auto& [name, value] : table) {
      if (name == found) return value;
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    refuse_value(key, known, found);
  }

  // Throws: Error unless the key is absent or has the one value that is supported.
  void require(std::string_view key, bool only);
  // Throws: Error unless the key is absent or an object or list without elements.
  void require_empty(std::string_view key);

  // Keys that have no effect on what this family computes; the caller says why.
  void ignore(std::initializer_list<std::string_view> keys);

  // Throws: Error naming the first key that was neither asked for nor is harmless with its value.
  void refuse_unread() const;

  // Throws: Error saying which values of the key are known and which was found.
  [[noreturn]] void refuse_value(std::string_view key, std::string_view known, std::string_view found) const;

 private:
  struct Object;
  std::string where_;
  std::unique_ptr<Object> object_;
};

}  // namespace clearhead::model
