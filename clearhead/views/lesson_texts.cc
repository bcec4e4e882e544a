// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/lesson_texts.h"

#include <nlohmann/json.hpp>

#include "clearhead/base/error.h"

namespace clearhead::views {

extern const std::string_view lesson_texts_en, lesson_texts_zh;

LessonTexts::LessonTexts(Language language) {
  const auto document = nlohmann::json::parse(language == Language::zh ? lesson_texts_zh : lesson_texts_en);
  for (const auto& [name, entry] : document.items()) {
    if (entry.is_string()) texts_[name] = entry.get<std::string>();
    if (!entry.is_object()) continue;
    for (const auto& [part, text] : entry.items()) texts_[name + "." + part] = text.get<std::string>();
  }
}

std::string LessonTexts::text(std::string_view name, const TextValues& values) const {
  const auto found = texts_.find(name);
  if (found == texts_.end()) base::fail("lesson", "a text", base::quoted(name));
  const std::string_view pattern = found->second;
  std::string result;
  for (size_t at = 0; at < pattern.size();) {
    const size_t open = std::min(pattern.find('{', at), pattern.size());
    result += pattern.substr(at, open - at);
    if (open == pattern.size()) break;
    const size_t close = pattern.find('}', open);
    const std::string_view word = pattern.substr(open + 1, close - open - 1);
    const auto value = values.find(word);
    if (value == values.end()) base::fail("lesson", "a value for every name in a text", base::quoted(word));
    result += value->second;
    at = close + 1;
  }
  return result;
}

}  // namespace clearhead::views
