// SPDX-License-Identifier: Apache-2.0
// How names of tokenizer.ggml.pre cut words, against llama.cpp, by the golden of golden/make_cuts_golden.py.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "clearhead/base/memory.h"
#include "clearhead/base/utf8.h"
#include "clearhead/text/byte_level.h"
#include "clearhead/text/category_pattern.h"
#include "clearhead/text/gguf_tokenizer.h"
#include "tests/format/gguf_bytes.h"
#include "tests/support/error_text.h"
#include "tests/text/id_hash.h"

namespace clearhead::text {
namespace {

using tests::error_text;
using tests::gguf_string;
using tests::GgufBytes;
using tests::hash_of;

const nlohmann::json& golden() {
  static const auto json = nlohmann::json::parse(base::read_file(CLEARHEAD_TEST_DATA "/cuts_golden.json", 1 << 20));
  return json;
}

// A vocabulary of all bytes, of the pairs of the golden, of whole words and of <mask>, cut as the name says.
GgufBytes file_of(std::string_view name) {
  std::string tokens, merges, types;
  for (int byte = 0; byte < 256; ++byte) {
    std::string written;
    base::append_utf8(written, character_of_byte(static_cast<unsigned char>(byte)));
    tokens += gguf_string(written);
  }
  const auto& pairs = golden().at("pairs");
  for (const auto& pair : pairs) {
    std::string piece = pair.get<std::string>();
    merges += gguf_string(piece);
    piece.erase(piece.find(' '), 1);
    tokens += gguf_string(piece);
  }
  const auto& whole = golden().at("whole");
  for (const auto& piece : whole) tokens += gguf_string(piece.get<std::string>());
  tokens += gguf_string("<mask>");
  const size_t count = 256 + pairs.size() + whole.size() + 1;
  constexpr int32_t kNormal = 1, kControl = 3;
  for (size_t id = 0; id < count; ++id) types += tests::le(id + 1 == count ? kControl : kNormal);
  GgufBytes file;
  file.word("tokenizer.ggml.model", "gpt2").word("tokenizer.ggml.pre", name);
  file.array("tokenizer.ggml.tokens", 8, count, tokens).array("tokenizer.ggml.token_type", 5, count, types);
  file.array("tokenizer.ggml.merges", 8, pairs.size(), merges);
  return file;
}

Tokenizer tokenizer_of(std::string_view name) {
  GgufBytes file = file_of(name);
  file.value("tokenizer.ggml.add_bos_token", 7, tests::le(false));
  return gguf_tokenizer(tests::read_gguf(file.text()).metadata());
}

TEST(GgufCut, IdsOfEveryNameAreThoseOfLlamaCpp) {
  size_t names = 0;
  for (const auto& [kinds, hashes] : golden().at("hashes").items()) {
    for (size_t at = 0; at < kinds.size();) {
      const size_t end = std::min(kinds.find(' ', at), kinds.size());
      const std::string name = kinds.substr(at, end - at);
      at = end + 1;
      ++names;
      const Tokenizer tokenizer = tokenizer_of(name);
      const auto& text_hashes = hashes.get_ref<const std::string&>();
      size_t place = 0;
      for (const auto& text : golden().at("texts")) {
        const std::string own = hash_of(tokenizer.encode_ids(text.get<std::string>()));
        EXPECT_EQ(own, text_hashes.substr(place, 8)) << name << " cuts " << text;
        place += 8;
      }
      EXPECT_EQ(place, text_hashes.size());
    }
  }
  EXPECT_GE(names, 80U);
}

TEST(GgufCut, TextsBeginAsInLlamaCppWhereTheFileDoesNotSay) {
  std::set<std::vector<int64_t>> kinds;
  for (const auto& [name, ids] : golden().at("begins").items()) {
    const Tokenizer tokenizer = gguf_tokenizer(tests::read_gguf(file_of(name).text()).metadata());
    kinds.insert(ids.get<std::vector<int64_t>>());
    EXPECT_EQ(tokenizer.encode_ids("a"), ids.get<std::vector<int64_t>>()) << name;
  }
  EXPECT_EQ(kinds.size(), 2U);
}

TEST(GgufCut, EveryKnownNameIsInTheGolden) {
  const std::string known = error_text([] { tokenizer_of("no-such-name"); });
  std::string all;
  for (const auto& [kinds, hashes] : golden().at("hashes").items()) all += " " + kinds;
  const std::string begin = "tokenizer.ggml.pre to be one of:";
  std::string listed = known.substr(known.find(begin) + begin.size());
  listed = listed.substr(0, listed.find(';'));
  const auto words = [](const std::string& text) {
    std::multiset<std::string> result;
    for (size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string::npos;) {
      const size_t end = std::min(text.find(' ', at), text.size());
      result.insert(text.substr(at, end - at));
      at = end;
    }
    return result;
  };
  EXPECT_EQ(words(listed), words(all));
  EXPECT_EQ(words(listed).count("deepseek-v3"), 1U);
}

std::string parts(std::string_view expression, std::string_view text) {
  std::string result;
  const auto pattern = category_pattern(expression);
  for_each_part(*pattern, text, {0, static_cast<uint32_t>(text.size())}, [&](Span span, bool match) {
    result += fmt::format("{}{}", match ? "|" : "_", text.substr(span.begin, span.size()));
  });
  return result;
}

TEST(CategoryPattern, MatchesAsTheExpressionSays) {
  EXPECT_EQ(parts(R"(\p{N}{1,3})", "a12345"), "_a|123|45");
  EXPECT_EQ(parts(R"([^\r\n\p{L}\p{N}]?\p{L}+)", "+ab1 c\u00e9"), "|+ab_1| c\u00e9");
  EXPECT_EQ(parts(R"(\s+(?!\S)|\s+)", "a   b "), "_a|  | _b| ");
  EXPECT_EQ(parts(R"((?:ab|a)(?=c)|b+)", "abcacbb"), "|ab_c|a_c|bb");
  EXPECT_EQ(parts(R"(\s+$)", "  a  "), "_  a|  ");
  EXPECT_EQ(parts(R"([a\-z\x{e9}]+)", "a-z\u00e9b"), "|a-z\u00e9_b");
  EXPECT_EQ(parts(R"((a|b){2,3}c?)", "abababcb"), "|aba|babc_b");
  EXPECT_EQ(parts(R"(\S+)", "a\u3000\u00e9"), "|a_\u3000|\u00e9");
  // White space beyond ASCII is in no range and no category.
  EXPECT_EQ(parts(R"([\x{3000}-\x{3002}]+)", "\u3000\u3001"), "_\u3000|\u3001");
  // What 16.0 calls a letter is none in 15.1.
  EXPECT_EQ(parts(R"(\p{L}+)", "a\u1c89b"), "|a_\u1c89|b");
}

TEST(CategoryPattern, WhatIsNoneIsRefused) {
  for (const char* expression :
       {"(a", "a)", "[a", "a**", "(a?)*", "\\q", "\\p{Zs}", "a{2,1}", "+", "\\x{110000}", "\\"}) {
    EXPECT_NE(error_text([&] { category_pattern(expression); }), "no error") << expression;
  }
}

// The bound is far above what is needed, and far below what a step that grows with the square would take.
TEST(CategoryPattern, LongRunsTakeNoSquare) {
  const auto start = std::chrono::steady_clock::now();
  for (const char* name : {"deepseek-llm", "deepseek-v3", "gpt-4o", "tekken", "kimi-k2", "exaone-moe", "default"}) {
    const Tokenizer tokenizer = tokenizer_of(name);
    for (const std::string run : {"a", "A", " ", "\n", "1", "!", " a", "\u4f60", "\u0301"}) {
      std::string text;
      while (text.size() < 300'000) text += run;
      EXPECT_GT(tokenizer.encode_ids(text + "x").size(), 1000U) << name;
    }
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  EXPECT_LT(taken.count(), 60.0);
}

}  // namespace
}  // namespace clearhead::text
