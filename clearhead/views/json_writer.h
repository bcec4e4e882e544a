// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace clearhead::views {

// Writes one JSON document from left to right. Commas are put where they belong; begin and end must match.
class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_list() { return open('['); }
  JsonWriter& end_list() { return close(']'); }

  // Inside an object, before each value.
  JsonWriter& key(std::string_view name);

  // Invalid UTF-8 becomes U+FFFD.
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool truth) { return raw(truth ? "true" : "false"); }
  // The shortest digits that read back as the same number; null for NaN and infinities.
  JsonWriter& value(float number);
  JsonWriter& value(double number);
  template <std::integral Integer>
    requires(!std::same_as<Integer, bool>)
  JsonWriter& value(Integer number) {
    return raw(std::to_string(number));
  }
  JsonWriter& null() { return raw("null"); }

  template <class Value>
  JsonWriter& value(const std::optional<Value>& perhaps) {
    return perhaps ? value(*perhaps) : null();
  }
  template <class Value>
  JsonWriter& member(std::string_view name, const Value& content) {
    return key(name).value(content);
  }
  JsonWriter& list(std::span<const float> numbers);

  // The document, which is complete once everything that was begun is ended.
  std::string take() && { return std::move(text_); }
  // What was written since the last call: a long document need not be held.
  std::string take_part() { return std::exchange(text_, {}); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& raw(std::string_view text);
  void separate();

  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace clearhead::views
