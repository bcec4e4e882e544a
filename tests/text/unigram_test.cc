// SPDX-License-Identifier: Apache-2.0
// Unigram with a vocabulary of a few pieces; what is expected was worked out by hand.
#include "clearhead/text/unigram.h"

#include <gtest/gtest.h>

#include "tests/support/error_text.h"
#include "tests/text/small_tokenizer.h"

namespace clearhead::text::tests {
namespace {

using nlohmann::json;

json unigram_json() {
  return json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
    "pre_tokenizer": null, "post_processor": null, "decoder": null,
    "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": false,
      "vocab": [["<unk>", 0.0], ["a", -1.0], ["b", -1.5], ["ab", -2.0], ["abc", -9.0], ["c", -3.0], ["\u4f60\u597d", -4.0], ["\u4f60", -5.0]]}})");
}

std::string cut(const json& made, std::string_view text) { return shown(from(made).encode(text)); }

TEST(Unigram, TheLargestSumOfScoresWins) {
  EXPECT_EQ(cut(unigram_json(), "ab"), "ab[0,2)") << "-2 against -1 - 1.5";
  EXPECT_EQ(cut(unigram_json(), "abc"), "ab[0,2) c[2,3)") << "-2 - 3 against -9";
  EXPECT_EQ(cut(unigram_json(), "aabb"), "a[0,1) ab[1,3) b[3,4)");
  EXPECT_EQ(cut(unigram_json(), "\u4f60\u597d\u4f60"), "\u4f60\u597d[0,6) \u4f60[6,9)");
}

TEST(Unigram, OfEqualSumsTheOneFoundFirst) {
  json made = unigram_json();
  made["model"]["vocab"][3][1] = -2.5;  // ab: as a and b
  EXPECT_EQ(cut(made, "ab"), "ab[0,2)") << "the longer piece begins earlier";
}

TEST(Unigram, UnknownOnesSideBySideAreOneToken) {
  EXPECT_EQ(cut(unigram_json(), "axyzb"), "a[0,1) <unk>[1,4) b[4,5)");
  EXPECT_EQ(cut(unigram_json(), "\u00e9\u597d"), "<unk>[0,5)");
  EXPECT_EQ(from(unigram_json()).encode("axyzbx").unknown_count, 2u);
  // As text, the unknown piece is a piece: alone itself, beside unknown characters one with them.
  EXPECT_EQ(cut(unigram_json(), "a<unk>b"), "a[0,1) <unk>[1,6) b[6,7)");
  EXPECT_EQ(cut(unigram_json(), "a<unk>xb"), "a[0,1) <unk>[1,7) b[7,8)");
}

TEST(Unigram, BytesForWhatIsUnknownIfAllAreThere) {
  json made = unigram_json();
  made["model"]["byte_fallback"] = true;
  EXPECT_EQ(cut(made, "a\u00e9"), "a[0,1) <unk>[1,3)");
  made["model"]["vocab"].push_back({"<0xC3>", -20.0});
  EXPECT_EQ(cut(made, "a\u00e9"), "a[0,1) <unk>[1,3)");
  made["model"]["vocab"].push_back({"<0xA9>", -20.0});
  EXPECT_EQ(cut(made, "a\u00e9"), "a[0,1) <0xC3>[1,3) <0xA9>[1,3)");
  EXPECT_EQ(from(made).encode("a\u00e9").unknown_count, 0u);
}

// Each byte stands for all unknown characters beside it; were they shown with each, a megabyte of them would take a
// terabyte.
TEST(Unigram, BytesOfManyUnknownCharactersDoNotShowAllOfThemEach) {
  json made = unigram_json();
  made["model"]["byte_fallback"] = true;
  for (const char* piece : {"<0xC3>", "<0xA9>"}) made["model"]["vocab"].push_back({piece, -20.0});
  std::string text;
  for (int i = 0; i < 40; ++i) text += "\u00e9";
  const auto tokens = from(made).encode(text).tokens;
  ASSERT_EQ(tokens.size(), 80u);
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(tokens[i].text, i == 0 ? text : tokens[i].piece);
    EXPECT_EQ(tokens[i].end - tokens[i].begin, text.size());
  }
}

TEST(Unigram, OfEqualPiecesTheLastCounts) {
  json made = unigram_json();
  made["model"]["vocab"].push_back({"a", -7.0});
  const auto tokens = from(made).encode("a").tokens;
  ASSERT_EQ(tokens.size(), 1u);
  EXPECT_EQ(tokens[0].id, 8);
}

// Twice the nearest double of k is not more than that of kk, but as the library reads them it is.
TEST(Unigram, ScoresAreReadWithTheErrorsOfTheLibrary) {
  json made = unigram_json();
  made["model"]["vocab"] = json::parse(R"([["<unk>", -30], ["k", -7.451570246608641], ["kk", -14.903140493217283]])");
  ASSERT_GE(-14.903140493217283, 2 * -7.451570246608641);
  EXPECT_EQ(cut(made, "kk"), "k[0,1) k[1,2)");
}

TEST(Unigram, WordsEndAtChineseCharactersAndPunctuation) {
  const auto continues = [](std::string_view text) {
    json made = unigram_json();
    made["model"]["vocab"].push_back({",", -3.0});
    std::string result;
    for (const Token& token : from(made).encode(text).tokens) result += token.continues_word ? '+' : '|';
    return result;
  };
  EXPECT_EQ(continues("aabb"), "|++");
  EXPECT_EQ(continues("a\u4f60b"), "|||");
  EXPECT_EQ(continues("a,b"), "|||");
}

TEST(Unigram, WhatItIsRefusedFor) {
  const auto refusal = [](const auto& change) {
    json made = unigram_json();
    change(made["model"]);
    return clearhead::tests::error_text([&] { from(made); });
  };
  EXPECT_EQ(refusal([](json& m) { m["unk_id"] = nullptr; }),
            "[tokenizer.json model] expected unk_id, the piece that stands for unknown text; found none");
  EXPECT_EQ(refusal([](json& m) { m["unk_id"] = 8; }),
            "[tokenizer.json model] expected unk_id below 8, the number of pieces; found 8");
  EXPECT_EQ(refusal([](json& m) { m["vocab"][1] = "a"; }),
            "[tokenizer.json model vocab[1]] expected a list of a text and a number; found \"a\"");
  EXPECT_EQ(refusal([](json& m) {
              m["vocab"][1] = json::array({"a", "b"});
            }),
            "[tokenizer.json model vocab[1]] expected a list of a text and a number; found a list");
  EXPECT_EQ(refusal([](json& m) {
              m["vocab"].push_back({std::string(1025, 'x'), -1.0});
            }),
            "[tokenizer.json model] expected pieces of at most 1024 characters and 16777216 characters in all; found "
            "more at piece 8");
}

TEST(Unigram, AMillionCharactersInOneWord) {
  json made = unigram_json();
  for (int length = 2; length <= 50; ++length)
    made["model"]["vocab"].push_back({std::string(length, 'x'), -1.0 * length});
  const Encoding encoding = from(made).encode(std::string(1'000'000, 'x'));
  EXPECT_EQ(encoding.tokens.size(), 20'000u);
}

}  // namespace
}  // namespace clearhead::text::tests
