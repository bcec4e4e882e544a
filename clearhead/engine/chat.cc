// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/chat.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/base/utf8.h"

namespace clearhead::engine {
namespace {

struct Row {
  ChatStyle style;
  std::string_view name;
  std::string_view mark;  // in a template
};

constexpr Row kStyles[] = {{ChatStyle::chatml, "chatml", "<|im_start|>"},
                           {ChatStyle::llama3, "llama3", "<|start_header_id|>"},
                           {ChatStyle::gemma, "gemma", "<start_of_turn>"},
                           {ChatStyle::llama2, "llama2", "[INST]"}};

constexpr size_t kShownBytes = 40;  // of a template that is not known

// A prompt as it is put together.
class Put {
 public:
  Put& mark(std::string_view text) {
    prompt_.text += text;
    return *this;
  }
  Put& quote(std::string_view text) {
    const size_t begin = prompt_.text.size();
    prompt_.text += base::valid_utf8(text);
    prompt_.quoted.push_back({begin, prompt_.text.size()});
    return *this;
  }
  // A whole turn, unless nothing is said in it.
  Put& turn(std::string_view before, std::string_view text, std::string_view after) {
    return text.empty() ? *this : mark(before).quote(text).mark(after);
  }
  operator ChatPrompt() { return std::move(prompt_); }

 private:
  ChatPrompt prompt_;
};

}  // namespace

ChatStyle recognise_chat(std::string_view chat_template) {
  for (const Row& row : kStyles) {
    if (chat_template.find(row.mark) != std::string_view::npos) return row.style;
  }
  base::refuse(
      "chat", fmt::format("a model with a chat template of one of the styles {}", fmt::join(chat_names(), ", ")),
      chat_template.empty() ? "a model without a template"
                            : fmt::format("one of another, which begins {}", base::quoted(chat_template, kShownBytes)),
      "name a style, or leave chat out");
}

std::vector<std::string_view> chat_names() {
  std::vector<std::string_view> names;
  for (const Row& row : kStyles) names.push_back(row.name);
  return names;
}

std::optional<ChatStyle> find_chat(std::string_view name) {
  for (const Row& row : kStyles) {
    if (row.name == name) return row.style;
  }
  return std::nullopt;
}

ChatPrompt chat_prompt(ChatStyle style, std::string_view system, std::string_view question) {
  switch (style) {
    case ChatStyle::chatml:
      return Put()
          .turn("<|im_start|>system\n", system, "<|im_end|>\n")
          .mark("<|im_start|>user\n")
          .quote(question)
          .mark("<|im_end|>\n<|im_start|>assistant\n");
    case ChatStyle::llama3:
      return Put()
          .turn("<|start_header_id|>system<|end_header_id|>\n\n", system, "<|eot_id|>")
          .mark("<|start_header_id|>user<|end_header_id|>\n\n")
          .quote(question)
          .mark("<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
    case ChatStyle::llama2:
      return Put().mark("[INST] ").turn("<<SYS>>\n", system, "\n<</SYS>>\n\n").quote(question).mark(" [/INST]");
    case ChatStyle::gemma:
      return Put()
          .mark("<start_of_turn>user\n")
          .turn("", system, "\n\n")
          .quote(question)
          .mark("<end_of_turn>\n<start_of_turn>model\n");
  }
  return Put().quote(question);
}

}  // namespace clearhead::engine
