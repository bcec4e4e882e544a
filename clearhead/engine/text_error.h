// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "clearhead/base/error.h"

namespace clearhead::engine {

// Thrown for a text of more tokens than the model has positions. Of a kind of its own, so that a program can say how
// its users let such a text be cut.
class TextTooLong : public base::Error {
 public:
  using Error::Error;
};

// Called while a base::Error is handled: throws one of the same kind that says first which text it is about.
[[noreturn]] void throw_about(std::string_view text_name);

}  // namespace clearhead::engine
