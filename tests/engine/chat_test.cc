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
  EXPECT_NE(error_text([] { recognise_chat("{{ 'x' }}"); }).find("found one of another, which begins \"{{ 'x' }}\";"),
            std::string::npos);
  EXPECT_NE(error_text([] { recognise_chat(""); }).find("found a model without a template"), std::string::npos);
  EXPECT_EQ(find_chat("gemma"), ChatStyle::gemma);
  EXPECT_EQ(find_chat("x"), std::nullopt);
  for (const std::string_view name : chat_names()) EXPECT_TRUE(find_chat(name)) << name;
}

TEST(Chat, AQuestionIsPutAsTheModelWantsIt) {
  const auto put = [](ChatStyle style, std::string_view system, std::string_view question) {
    return chat_prompt(style, system, question).text;
  };
  EXPECT_EQ(put(ChatStyle::chatml, "S", "Q"),
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(put(ChatStyle::chatml, "", "Q"), "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(put(ChatStyle::llama3, "", "Q"),
            "<|start_header_id|>user<|end_header_id|>\n\nQ<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(put(ChatStyle::llama2, "S", "Q"), "[INST] <<SYS>>\nS\n<</SYS>>\n\nQ [/INST]");
  EXPECT_EQ(put(ChatStyle::gemma, "", "Q"), "<start_of_turn>user\nQ<end_of_turn>\n<start_of_turn>model\n");
}

TEST(Chat, WhatPeopleWroteIsKnown) {
  for (const auto style : {ChatStyle::chatml, ChatStyle::llama3, ChatStyle::llama2, ChatStyle::gemma}) {
    const ChatPrompt both = chat_prompt(style, "be kind", "a\xff?"), one = chat_prompt(style, "", "what");
    ASSERT_EQ(both.quoted.size(), 2U);
    ASSERT_EQ(one.quoted.size(), 1U);
    const auto part = [](const ChatPrompt& prompt, size_t i) {
      return prompt.text.substr(prompt.quoted[i].begin, prompt.quoted[i].end - prompt.quoted[i].begin);
    };
    EXPECT_EQ(part(both, 0), "be kind");
    EXPECT_EQ(part(both, 1), "a\uFFFD?");
    EXPECT_EQ(part(one, 0), "what");
  }
}

// The tokenizer puts it there, and what people write is read as letters, so that it never stands there twice.
TEST(Chat, NoPromptBringsTheTokenThatBeginsTexts) {
  for (const auto style : {ChatStyle::chatml, ChatStyle::llama3, ChatStyle::llama2, ChatStyle::gemma}) {
    const std::string text = chat_prompt(style, "S", "Q").text;
    for (const char* token : {"<s>", "<bos>", "<|begin_of_text|>", "<|endoftext|>"}) {
      EXPECT_EQ(text.find(token), std::string::npos) << token;
    }
  }
}

}  // namespace
}  // namespace clearhead::engine
