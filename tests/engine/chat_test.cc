// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/chat.h"

#include <gtest/gtest.h>

#include "tests/support/error_text.h"

namespace clearhead::engine {
namespace {

using tests::error_text;

TEST(Chat, TemplatesAreToldByTheirMarks) {
  EXPECT_EQ(recognise_chat("{{'<|im_start|>' + message['role']}}"), ChatStyle::chatml);
  EXPECT_EQ(recognise_chat("{{ '<|start_header_id|>' }}"), ChatStyle::llama3);
  EXPECT_EQ(recognise_chat("{{ '<start_of_turn>' }}"), ChatStyle::gemma);
  EXPECT_EQ(recognise_chat("{{ '[INST] ' }}"), ChatStyle::llama2);
  EXPECT_NE(error_text([] { recognise_chat("{{ 'x' }}"); }).find("found another template"), std::string::npos);
  EXPECT_NE(error_text([] { recognise_chat(""); }).find("found a model without a template"), std::string::npos);
  EXPECT_EQ(parse_chat("gemma"), ChatStyle::gemma);
  EXPECT_EQ(error_text([] { parse_chat("x"); }),
            "usage: [chat] expected one of chatml, llama3, gemma, llama2; found \"x\"");
}

TEST(Chat, AQuestionIsPutAsTheModelWantsIt) {
  EXPECT_EQ(chat_prompt(ChatStyle::chatml, "S", "Q"),
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(chat_prompt(ChatStyle::chatml, "", "Q"), "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(chat_prompt(ChatStyle::llama3, "", "Q"),
            "<|start_header_id|>user<|end_header_id|>\n\nQ<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(chat_prompt(ChatStyle::llama2, "S", "Q"), "[INST] <<SYS>>\nS\n<</SYS>>\n\nQ [/INST]");
  EXPECT_EQ(chat_prompt(ChatStyle::gemma, "", "Q"), "<start_of_turn>user\nQ<end_of_turn>\n<start_of_turn>model\n");
}

}  // namespace
}  // namespace clearhead::engine
