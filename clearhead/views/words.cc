// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/words.h"

#include <nlohmann/json.hpp>

#include "clearhead/base/error.h"

namespace clearhead::views {

extern const std::string_view words_en, words_zh;  // made by embed_file()

Words::Words(std::string_view json) : sentences_(nlohmann::json::parse(json).get<decltype(sentences_)>()) {}

std::string_view Words::operator[](std::string_view name) const {
  const auto found = sentences_.find(name);
  if (found == sentences_.end()) base::fail("words", "a sentence of this name", base::quoted(name));
  return found->second;
}

const Words& words_of(Language language) {
  static const Words english(words_en), chinese(words_zh);
  return language == Language::zh ? chinese : english;
}

}  // namespace clearhead::views
