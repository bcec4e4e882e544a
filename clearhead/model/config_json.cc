// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/config_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>

#include "clearhead/base/error.h"
#include "clearhead/model/harmless_keys.h"

namespace clearhead::model {
namespace {

// A value as errors show it: one line, cut.
std::string shown(const nlohmann::json& value) {
  if (value.is_string()) return base::quoted(value.get_ref<const std::string&>());
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  return value.dump();
}

}  // namespace

struct ConfigJson::Object {
  nlohmann::json values;
  std::set<std::string, std::less<>> read;

  // The value, or nullptr if it is absent or null.
  const nlohmann::json* find(std::string_view key) {
    read.emplace(key);
    const auto found = values.find(key);
    return found == values.end() || found->is_null() ? nullptr : &*found;
  }
};

ConfigJson::ConfigJson(std::string_view text, std::string where)
    : where_(std::move(where)), object_(std::make_unique<Object>()) {
  std::set<std::string> seen;
  const auto refuse_repeated = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    if (event == nlohmann::json::parse_event_t::key && depth == 1 && !seen.insert(parsed.get<std::string>()).second) {
      base::fail(where_, "each key once", "twice " + base::quoted(parsed.get<std::string>()));
    }
    return true;
  };
  try {
    object_->values = nlohmann::json::parse(text, refuse_repeated);
  } catch (const nlohmann::json::exception&) {
    base::fail(where_, "a JSON object", "text that is not JSON");
  }
  if (!object_->values.is_object()) base::fail(where_, "a JSON object", shown(object_->values));
}

ConfigJson::~ConfigJson() = default;
ConfigJson::ConfigJson(ConfigJson&&) noexcept = default;
ConfigJson& ConfigJson::operator=(ConfigJson&&) noexcept = default;

std::string ConfigJson::word(std::string_view key, std::optional<std::string_view> fallback) {
  const nlohmann::json* value = object_->find(key);
  if (value == nullptr && fallback) return std::string(*fallback);
  if (value == nullptr || !value->is_string()) {
    base::fail(where_, fmt::format("{} with a text", key), value == nullptr ? "none" : shown(*value));
  }
  return value->get<std::string>();
}

size_t ConfigJson::count(std::string_view key, std::optional<size_t> fallback) {
  const nlohmann::json* value = object_->find(key);
  if (value == nullptr && fallback) return *fallback;
  if (value == nullptr || !value->is_number_unsigned() || value->get<uint64_t>() > kMaxCount) {
    base::fail(where_, fmt::format("{} with a whole number from 0 to {}", key, kMaxCount),
               value == nullptr ? "none" : shown(*value));
  }
  return value->get<size_t>();
}

float ConfigJson::number(std::string_view key, std::optional<float> fallback) {
  const nlohmann::json* value = object_->find(key);
  if (value == nullptr && fallback) return *fallback;
  if (value == nullptr || !value->is_number() || !std::isfinite(value->get<float>())) {
    base::fail(where_, fmt::format("{} with a number", key), value == nullptr ? "none" : shown(*value));
  }
  return value->get<float>();
}

bool ConfigJson::flag(std::string_view key, bool fallback) {
  const nlohmann::json* value = object_->find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) base::fail(where_, fmt::format("{} true or false", key), shown(*value));
  return value->get<bool>();
}

std::optional<ConfigJson> ConfigJson::object(std::string_view key) {
  const nlohmann::json* value = object_->find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) base::fail(where_, fmt::format("{} with an object", key), shown(*value));
  return ConfigJson(value->dump(), fmt::format("{}, {}", where_, key));
}

std::optional<std::vector<std::string>> ConfigJson::words(std::string_view key) {
  const nlohmann::json* value = object_->find(key);
  if (value == nullptr) return std::nullopt;
  const bool fits = value->is_array() && std::ranges::all_of(*value, [](const auto& each) { return each.is_string(); });
  if (!fits) base::fail(where_, fmt::format("{} with a list of texts", key), shown(*value));
  return value->get<std::vector<std::string>>();
}

std::optional<std::vector<double>> ConfigJson::numbers(std::string_view key) {
  const nlohmann::json* value = object_->find(key);
  if (value == nullptr) return std::nullopt;
  const bool fits = value->is_array() && std::ranges::all_of(*value, [](const auto& each) { return each.is_number(); });
  if (!fits) base::fail(where_, fmt::format("{} with a list of numbers", key), shown(*value));
  return value->get<std::vector<double>>();
}

std::vector<int64_t> ConfigJson::integers(std::string_view key) {
  const nlohmann::json* value = object_->find(key);
  if (value == nullptr) return {};
  if (value->is_number_integer()) return {value->get<int64_t>()};
  const auto fits = [](const auto& each) { return each.is_number_integer(); };
  if (!value->is_array() || !std::ranges::all_of(*value, fits)) {
    base::fail(where_, fmt::format("{} with whole numbers", key), shown(*value));
  }
  return value->get<std::vector<int64_t>>();
}

bool ConfigJson::contains(std::string_view key) { return object_->find(key) != nullptr; }

bool ConfigJson::is_null(std::string_view key) const {
  const auto found = object_->values.find(key);
  return found != object_->values.end() && found->is_null();
}

void ConfigJson::require(std::string_view key, bool only) {
  if (flag(key, only) != only) refuse_value(key, only ? "true" : "false", only ? "false" : "true");
}

void ConfigJson::require_empty(std::string_view key) {
  const nlohmann::json* value = object_->find(key);
  if (value != nullptr && !(value->is_structured() && value->empty())) {
    base::fail(where_, fmt::format("no {}", key), shown(*value), "models with it are not supported");
  }
}

void ConfigJson::ignore(std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys) object_->read.emplace(key);
}

void ConfigJson::refuse_unread() const {
  for (const auto& [key, value] : object_->values.items()) {
    if (object_->read.contains(key) || value.is_null()) continue;
    if (const auto harmless = std::ranges::find(harmless_keys(), key, &HarmlessKey::key);
        harmless != harmless_keys().end()) {
      if (harmless->only.empty() || value == nlohmann::json::parse(harmless->only)) continue;
      base::fail(where_, fmt::format("{} to be {} ({})", key, harmless->only, harmless->reason), shown(value),
                 "models with another value are not supported");
    }
    if (const auto refused = std::ranges::find(refused_keys(), key, &RefusedKey::key);
        refused != refused_keys().end()) {
      base::fail(where_, refused->expected, refused->found, refused->advice);
    }
    base::fail(where_, "keys that this model family knows", base::quoted(key),
               "if it does not change what the model computes, remove it from the file");
  }
}

void ConfigJson::refuse_value(std::string_view key, std::string_view known, std::string_view found) const {
  base::fail(where_, fmt::format("{} to be one of: {}", key, known), base::quoted(found));
}

}  // namespace clearhead::model
