// SPDX-License-Identifier: Apache-2.0
#include "clearhead/format/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "clearhead/base/error.h"

namespace clearhead::format {
namespace {

constexpr std::string_view kJinja = "chat_template.jinja", kTokenizer = "tokenizer_config.json";
constexpr std::string_view kDefault = "default";

// The default of [{"name": ..., "template": ...}, ...].
std::string default_of(const nlohmann::json& list, const std::string& where) {
  const auto is_text = [](const nlohmann::json& row, const char* key) {
    return row.is_object() && row.contains(key) && row[key].is_string();
  };
  for (const nlohmann::json& row : list) {
    if (!is_text(row, "name") || !is_text(row, "template")) {
      base::fail(where, "chat_template with a name and a template in each of its rows", "one without");
    }
  }
  const auto found = std::ranges::find_if(list, [](const auto& row) { return row["name"] == kDefault; });
  if (found == list.end()) {
    base::fail(where, fmt::format("a chat_template that is named {}", base::quoted(kDefault)),
               list.empty() ? "an empty list" : fmt::format("{} of other names", list.size()), "name a style");
  }
  return (*found)["template"].get<std::string>();
}

std::string of_tokenizer_config(const std::string& text, const std::string& where) {
  nlohmann::json file;
  try {
    file = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception&) {
    base::fail(where, "a JSON object", "text that is not JSON", "the file is damaged; name a style");
  }
  if (!file.is_object()) base::fail(where, "a JSON object", "another value", "name a style");
  const auto found = file.find("chat_template");
  if (found == file.end() || found->is_null()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (found->is_array()) return default_of(*found, where);
  base::fail(where, "chat_template with a text or a list of named ones", "another value", "name a style");
}

}  // namespace

std::string chat_template(const Checkpoint& checkpoint) {
  if (const GgufMetadata* gguf = checkpoint.gguf_metadata()) {
    return std::string(gguf->find_word("tokenizer.chat_template").value_or(""));
  }
  if (std::optional<std::string> jinja = checkpoint.file_beside(kJinja)) return std::move(*jinja);
  const std::optional<std::string> config = checkpoint.file_beside(kTokenizer);
  if (!config) return "";
  return of_tokenizer_config(*config, base::quoted((checkpoint.folder() / kTokenizer).string(), 400));
}

}  // namespace clearhead::format
