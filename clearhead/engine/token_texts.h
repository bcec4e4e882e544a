// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "clearhead/engine/session.h"

namespace clearhead::engine {

// What people read of tokens as they are written. One that is part of a character shows all of it, as tokens of a text
// do, and so is known when the character is whole; bytes that become none show U+FFFD.
class TokenTexts {
 public:
  explicit TokenTexts(const Session& session) : session_(session) {}

  // Takes one more token. Returns the texts that are known now, in the order of the tokens.
  std::vector<std::string> add(int64_t id);

  // The rest.
  std::vector<std::string> finish();

 private:
  // Texts of the open tokens that are known; those stay open that a later token may make whole.
  std::vector<std::string> settle();

  const Session& session_;
  std::vector<int64_t> open_;  // those after the last one that ended with a character
};

}  // namespace clearhead::engine
