// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "clearhead/views/terminal.h"

namespace clearhead::views {

// Everything that these views say to people, in one language: words/en.json, words/zh.json. A further language is one
// more file, one more Language and one line in words_of(). A {name} in a sentence is filled in by fill_in().
class Words {
 public:
  // json: one object of strings.
  explicit Words(std::string_view json);

  // The sentence under a name ("looks", "kind.previous"). An unknown name is our own mistake.
  std::string_view operator[](std::string_view name) const;

  const std::map<std::string, std::string, std::less<>>& all() const { return sentences_; }

 private:
  std::map<std::string, std::string, std::less<>> sentences_;
};

const Words& words_of(Language language);

}  // namespace clearhead::views
