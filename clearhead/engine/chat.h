// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/engine/session.h"

namespace clearhead::engine {

// How a chat model wants a question to be put.
enum class ChatStyle { chatml, llama3, llama2, gemma };

// The style that a template of a model's files is, told by its marks; the template itself is never run.
// Throws: Error (usage) if it is none that is known here, or empty.
ChatStyle recognise_chat(std::string_view chat_template);

// What the styles are called: chatml, llama3, gemma, llama2.
std::vector<std::string_view> chat_names();
// The style of that name; none if there is none.
std::optional<ChatStyle> find_chat(std::string_view name);

// A text as a chat model reads it, and the parts of it that people wrote.
struct ChatPrompt {
  std::string text;
  std::vector<QuotedPart> quoted = {};
};

// One question, with an instruction before it unless system is empty, up to where the model answers. Bytes that are no
// UTF-8 stand as U+FFFD.
ChatPrompt chat_prompt(ChatStyle style, std::string_view system, std::string_view question);

}  // namespace clearhead::engine
