// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/json_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "clearhead/base/error.h"

namespace clearhead::text {
namespace {

using simdjson::dom::element_type;

// More than any component has; keeps the search for a field twice there short.
constexpr size_t kMaxFields = 64;

std::string described(JsonFields::Element element) {
  switch (element.type()) {
    case element_type::NULL_VALUE: return "null";
    case element_type::BOOL: return element.get_bool().value_unsafe() ? "true" : "false";
    case element_type::STRING: return base::quoted(element.get_string().value_unsafe());
    case element_type::INT64: return fmt::format("{}", element.get_int64().value_unsafe());
    case element_type::UINT64: return fmt::format("{}", element.get_uint64().value_unsafe());
    case element_type::DOUBLE: return fmt::format("{}", element.get_double().value_unsafe());
    case element_type::ARRAY: return "a list";
    case element_type::OBJECT: return "an object";
  }
  return "something else";
}

}  // namespace

void JsonFields::fail(std::string_view where, std::string_view expected, Element found) {
  base::fail(where, expected, described(found));
}

JsonFields::JsonFields(Element element, std::string where) : where_(std::move(where)) {
  simdjson::dom::object object;
  if (element.get_object().get(object) != simdjson::SUCCESS) fail(where_, "an object", element);
  for (const simdjson::dom::key_value_pair field : object) {
    if (has(field.key)) base::fail(where_, "each field once", fmt::format("{} twice", base::quoted(field.key)));
    fields_.push_back({field.key, field.value});
    if (fields_.size() > kMaxFields) base::fail(where_, fmt::format("at most {} fields", kMaxFields), "more");
  }
}

const JsonFields::Field* JsonFields::peek(std::string_view name) const {
  const auto found = std::ranges::find(fields_, name, &Field::name);
  return found == fields_.end() ? nullptr : &*found;
}

std::optional<JsonFields::Element> JsonFields::optional(std::string_view name) {
  const auto found = std::ranges::find(fields_, name, &Field::name);
  if (found == fields_.end()) return std::nullopt;
  found->asked = true;
  if (found->value.is_null()) return std::nullopt;
  return found->value;
}

JsonFields::Element JsonFields::required(std::string_view name) {
  const auto found = std::ranges::find(fields_, name, &Field::name);
  if (found == fields_.end()) base::fail(where_, fmt::format("a field {}", base::quoted(name)), "none");
  found->asked = true;
  return found->value;
}

bool JsonFields::boolean(std::string_view name) {
  bool value;
  const Element element = required(name);
  if (element.get_bool().get(value) != simdjson::SUCCESS)
    fail(where_ + " " + std::string(name), "true or false", element);
  return value;
}

std::string_view JsonFields::string(std::string_view name) {
  std::string_view value;
  const Element element = required(name);
  if (element.get_string().get(value) != simdjson::SUCCESS) fail(where_ + " " + std::string(name), "a text", element);
  return value;
}

uint64_t JsonFields::number(std::string_view name) {
  uint64_t value;
  const Element element = required(name);
  if (element.get_uint64().get(value) != simdjson::SUCCESS) {
    fail(where_ + " " + std::string(name), "an integer that is not negative", element);
  }
  return value;
}

size_t JsonFields::one_of(std::string_view name, std::span<const std::string_view> names) {
  const std::string_view value = string(name);
  const auto found = std::ranges::find(names, value);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  const std::string place = name == "type" ? where_ : where_ + " " + std::string(name);
  base::fail(place, fmt::format("one of {}", fmt::join(names, ", ")), base::quoted(value));
}

void JsonFields::close() const {
  for (const Field& field : fields_) {
    if (!field.asked) base::fail(where_, "only fields that are known here", base::quoted(field.name));
  }
}

}  // namespace clearhead::text
