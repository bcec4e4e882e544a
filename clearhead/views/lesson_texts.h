// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "clearhead/views/terminal.h"

namespace clearhead::views {

// Values for the {names} in a text.
using TextValues = std::map<std::string, std::string, std::less<>>;

// The lesson's words in one language, from lesson/en.json or lesson/zh.json.
class LessonTexts {
 public:
  explicit LessonTexts(Language language);

  // The text under a name ("end", "query.title"), every {name} replaced. A name without a value is our own mistake.
  std::string text(std::string_view name, const TextValues& values = {}) const;

 private:
  std::map<std::string, std::string, std::less<>> texts_;
};

}  // namespace clearhead::views
