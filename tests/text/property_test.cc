// SPDX-License-Identifier: Apache-2.0
// Laws that hold for every text.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "clearhead/base/utf8.h"
#include "clearhead/text/toy_tokenizer.h"
#include "clearhead/text/word.h"
#include "tests/text/small_tokenizer.h"

namespace clearhead::text::tests {
namespace {

// Texts of the pieces that matter, and any bytes.
std::string any_text() {
  const std::vector<std::string> parts = {"a",      "b",          "play",   "ing",    "the",    " ",
                                          "\n",     "!",          "\u00ef", "\u0308", "\u4f60", "\ud55c",
                                          "\u200b", "[CLS]",      "Xy",     "x",      "\xff",   "\xe4\xb8",
                                          "\u302e", "\U0001d15e", "I",      "\u0130", "\u3000"};
  std::string text;
  for (const std::string& part : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(parts))) text += part;
  const auto bytes = *rc::gen::resize(4, rc::gen::arbitrary<std::string>());
  return text + bytes;
}

const Tokenizer& tokenizer() {
  static const Tokenizer made = [] {
    nlohmann::json json = small_json();
    json["added_tokens"].push_back(added_token(18, "Xy"));
    json["added_tokens"].back()["lstrip"] = true;
    return from(json);
  }();
  return made;
}

void check_spans(const Encoding& encoding, std::string_view text) {
  size_t last_begin = 0, last_end = 0;
  for (const Token& token : encoding.tokens) {
    RC_ASSERT(!base::first_invalid_utf8(token.text).has_value());
    if (token.special) {
      RC_ASSERT(token.begin == token.end);
      continue;
    }
    RC_ASSERT(token.begin < token.end);
    RC_ASSERT(token.end <= text.size());
    RC_ASSERT(token.begin >= last_begin);
    RC_ASSERT(token.end >= last_end);
    // Two tokens share bytes only where one character became several pieces.
    if (token.begin < last_end) RC_ASSERT(token.continues_word);
    last_begin = token.begin;
    last_end = token.end;
  }
}

TEST(TextLaw, SpansRiseAndStayInTheText) {
  EXPECT_TRUE(rc::check([] {
    const std::string text = any_text();
    check_spans(tokenizer().encode(text), text);
  }));
}

TEST(TextLaw, ToySpansTileTheText) {
  EXPECT_TRUE(rc::check([] {
    const std::string text = any_text();
    const Encoding encoding = toy_encode(text);
    size_t last = 0;
    for (const Token& token : encoding.tokens) {
      const std::string_view between = std::string_view(text).substr(last, token.begin - last);
      RC_ASSERT(toy_encode(between).tokens.empty());
      last = token.end;
    }
    RC_ASSERT(toy_encode(std::string_view(text).substr(last)).tokens.empty());
  }));
}

TEST(TextLaw, EncodeIdsAgreesWithEncode) {
  EXPECT_TRUE(rc::check([] {
    const std::string text = any_text();
    std::vector<int64_t> ids;
    for (const Token& token : tokenizer().encode(text).tokens) ids.push_back(token.id);
    RC_ASSERT(tokenizer().encode_ids(text) == ids);
  }));
}

TEST(TextLaw, DecodedTextEncodesToTheSameIds) {
  EXPECT_TRUE(rc::check([] {
    // Words that the vocabulary can write; cleanup of a space before ! changes no token.
    const std::vector<std::string> words = {"a", "b", "ab", "abb", "playing", "played", "the", "naive", "!", "\u4f60"};
    std::string text;
    for (const std::string& word : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(words))) {
      text += word + " ";
    }
    const std::vector<int64_t> ids = tokenizer().encode_ids(text, false);
    RC_ASSERT(tokenizer().encode_ids(tokenizer().decode(ids, true), false) == ids);
  }));
}

TEST(TextLaw, EveryTokenIsInExactlyOneWord) {
  EXPECT_TRUE(rc::check([] {
    const Encoding encoding = tokenizer().encode(any_text());
    size_t next = 0;
    for (const auto& [first, end] : word_groups(encoding)) {
      RC_ASSERT(first == next);
      RC_ASSERT(end > first);
      if (encoding.tokens[first].special) RC_ASSERT(end == first + 1);
      next = end;
    }
    RC_ASSERT(next == encoding.tokens.size());
  }));
}

}  // namespace
}  // namespace clearhead::text::tests
