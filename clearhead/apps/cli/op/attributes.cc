// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/op/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "clearhead/base/error.h"

namespace clearhead::apps {
namespace {

using nlohmann::json;

// The object, or nothing if the text is no JSON, no object, too deep or has a key twice.
json parse_object(std::string_view text, std::string& complaint) {
  std::set<std::string> keys;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key && depth == 1 && !keys.insert(parsed.get<std::string>()).second) {
      complaint = fmt::format("{} twice", base::quoted(parsed.get<std::string>()));
    }
    return depth < 16;
  };
  json object = json::parse(text, watch, false);
  if (object.is_discarded() || !object.is_object()) complaint = base::quoted(text);
  return object;
}

}  // namespace

Attributes::Attributes(std::string where, std::string_view text) : where_(std::move(where)) {
  std::string complaint;
  const json object = parse_object(text, complaint);
  if (!complaint.empty()) base::refuse(where_, "attributes as one JSON object", complaint);
  for (const auto& [name, value] : object.items()) {
    Value& kept = values_[name];
    if (value.is_boolean()) kept = value.get<bool>();
    if (value.is_number_float() || value.is_number_unsigned()) kept = value.get<double>();
    const bool fits = !value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{INT64_MAX};
    if (value.is_number_integer() && fits) kept = value.get<int64_t>();
    if (value.is_string()) kept = value.get<std::string>();
  }
}

const Attributes::Value* Attributes::find(const std::string& name) {
  asked_.insert(name);
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

void Attributes::refuse_type(const std::string& name, std::string_view expected) const {
  struct Shown {
    std::string operator()(std::monostate) const { return "null, a list or an object"; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const { return fmt::format("{}", value); }
    std::string operator()(const std::string& value) const { return base::quoted(value); }
  };
  base::refuse(where_, fmt::format("attribute {} to be {}", name, expected), std::visit(Shown(), values_.at(name)));
}

std::optional<bool> Attributes::flag(const std::string& name) {
  const Value* value = find(name);
  if (!value) return std::nullopt;
  if (const bool* truth = std::get_if<bool>(value)) return *truth;
  if (const int64_t* bit = std::get_if<int64_t>(value); bit && (*bit == 0 || *bit == 1)) return *bit == 1;
  refuse_type(name, "true, false, 0 or 1");
}

std::optional<int64_t> Attributes::integer(const std::string& name) {
  const Value* value = find(name);
  if (!value) return std::nullopt;
  if (const int64_t* integer = std::get_if<int64_t>(value)) return *integer;
  refuse_type(name, "an integer");
}

std::optional<double> Attributes::number(const std::string& name) {
  const Value* value = find(name);
  if (!value) return std::nullopt;
  double number = std::numeric_limits<double>::infinity();
  if (const double* real = std::get_if<double>(value)) number = *real;
  if (const int64_t* integer = std::get_if<int64_t>(value)) number = static_cast<double>(*integer);
  if (std::abs(number) <= std::numeric_limits<float>::max()) return number;
  refuse_type(name, "a number that a float can hold");
}

std::optional<std::string> Attributes::text(const std::string& name) {
  const Value* value = find(name);
  if (!value) return std::nullopt;
  if (const std::string* text = std::get_if<std::string>(value)) return *text;
  refuse_type(name, "a text");
}

std::optional<size_t> Attributes::count(const std::string& name) {
  const std::optional<int64_t> value = integer(name);
  if (!value) return std::nullopt;
  if (*value < 1) refuse_type(name, "at least 1");
  return static_cast<size_t>(*value);
}

void Attributes::check_all_known() const {
  for (const auto& [name, value] : values_) {
    if (asked_.contains(name)) continue;
    base::refuse(where_, fmt::format("an attribute of {}", fmt::join(asked_, ", ")), base::quoted(name));
  }
}

}  // namespace clearhead::apps
