// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "clearhead/format/checkpoint.h"

namespace clearhead::format {

// The text of the chat template of a model's files, or nothing if they have none: tokenizer.chat_template of a GGUF;
// beside other files chat_template.jinja or, without one, chat_template of tokenizer_config.json, of several the one
// that is named "default". It is a program in the language of Jinja, which nobody here runs.
// Throws: Error (failure) if such a file is too large or not what it should be, or if none of several is the default.
std::string chat_template(const Checkpoint& checkpoint);

}  // namespace clearhead::format
