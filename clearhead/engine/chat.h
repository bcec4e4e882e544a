// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace clearhead::engine {

// How a chat model wants a question to be put.
enum class ChatStyle { chatml, llama3, llama2, gemma };

// The style that a template of a model's files is, told by its marks; the template itself is never run.
// Throws: Error (usage) if it is none that is known here, or empty.
ChatStyle recognise_chat(std::string_view chat_template);

// "chatml", "llama3", "llama2" or "gemma". Throws: Error (usage) for any other name.
ChatStyle parse_chat(std::string_view name);

// One question, with an instruction before it unless system is empty, as the model reads it up to where it answers.
std::string chat_prompt(ChatStyle style, std::string_view system, std::string_view question);

}  // namespace clearhead::engine
