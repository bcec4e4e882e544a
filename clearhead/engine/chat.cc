// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/chat.h"

#include <fmt/format.h>

#include "clearhead/base/error.h"

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

std::string names() {
  std::string list;
  for (const Row& row : kStyles) list += (list.empty() ? "" : ", ") + std::string(row.name);
  return list;
}

}  // namespace

ChatStyle recognise_chat(std::string_view chat_template) {
  for (const Row& row : kStyles) {
    if (chat_template.find(row.mark) != std::string_view::npos) return row.style;
  }
  base::refuse("chat", "a model with a chat template of one of the styles " + names(),
               chat_template.empty() ? "a model without a template" : "another template",
               "name a style, or leave chat out");
}

ChatStyle parse_chat(std::string_view name) {
  for (const Row& row : kStyles) {
    if (row.name == name) return row.style;
  }
  base::refuse("chat", "one of " + names(), base::quoted(name));
}

std::string chat_prompt(ChatStyle style, std::string_view system, std::string_view question) {
  switch (style) {
    case ChatStyle::chatml: {
      const std::string first = system.empty() ? "" : fmt::format("<|im_start|>system\n{}<|im_end|>\n", system);
      return first + fmt::format("<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n", question);
    }
    case ChatStyle::llama3: {
      const auto turn = [](std::string_view role, std::string_view text) {
        return fmt::format("<|start_header_id|>{}<|end_header_id|>\n\n{}<|eot_id|>", role, text);
      };
      return (system.empty() ? "" : turn("system", system)) + turn("user", question) +
             "<|start_header_id|>assistant<|end_header_id|>\n\n";
    }
    case ChatStyle::llama2: {
      const std::string first = system.empty() ? "" : fmt::format("<<SYS>>\n{}\n<</SYS>>\n\n", system);
      return fmt::format("[INST] {}{} [/INST]", first, question);
    }
    case ChatStyle::gemma: {
      const std::string first = system.empty() ? "" : fmt::format("{}\n\n", system);
      return fmt::format("<start_of_turn>user\n{}{}<end_of_turn>\n<start_of_turn>model\n", first, question);
    }
  }
  return std::string(question);
}

}  // namespace clearhead::engine
