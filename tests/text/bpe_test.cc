// SPDX-License-Identifier: Apache-2.0
// Byte pair encoding with a few merges, and what goes with it; what is expected was worked out by hand.
#include "clearhead/text/bpe.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "clearhead/text/word_patterns.h"
#include "tests/support/error_text.h"
#include "tests/text/small_tokenizer.h"

namespace clearhead::text::tests {
namespace {

using clearhead::tests::error_text;
using nlohmann::json;

json bpe_json(const char* pieces, const char* merges) {
  json made = {{"version", "1.0"},         {"added_tokens", json::array()}, {"normalizer", nullptr},
               {"pre_tokenizer", nullptr}, {"post_processor", nullptr},     {"decoder", nullptr}};
  made["model"] = {{"type", "BPE"}, {"vocab", json::parse(pieces)}, {"merges", json::parse(merges)}};
  return made;
}

json letters() {
  return bpe_json(R"({"?":0,"a":1,"b":2,"c":3,"ab":4,"bc":5,"abc":6,"aa":7,"<0xC3>":8,"<0xA9>":9})",
                  R"([["b","c"],["a","b"],["a","bc"],["a","a"]])");
}

std::string cut(const json& made, std::string_view text) { return shown(from(made).encode(text)); }

TEST(Bpe, TheMergeLearnedFirstThenTheLeftmost) {
  EXPECT_EQ(cut(letters(), "abc"), "abc[0,3)");
  EXPECT_EQ(cut(letters(), "abab"), "ab[0,2) ab[2,4)");
  EXPECT_EQ(cut(letters(), "aaa"), "aa[0,2) a[2,3)");
  EXPECT_EQ(cut(letters(), "aabcb"), "a[0,1) abc[1,4) b[4,5)");
}

// The two ways to merge, by looking at all neighbours and by a queue, are one.
TEST(Bpe, LongWordsAsShortOnes) {
  std::string text, expected;
  for (int i = 0; i < 40; ++i) {
    text += "aabcb";
    const auto at = static_cast<size_t>(i) * 5;
    expected +=
        fmt::format("{}a[{},{}) abc[{},{}) b[{},{})", i == 0 ? "" : " ", at, at + 1, at + 1, at + 4, at + 4, at + 5);
  }
  EXPECT_EQ(cut(letters(), text), expected);
}

TEST(Bpe, MergesAsTextsOrPairs) {
  json made = letters();
  made["model"]["merges"] = {"b c", "a bc"};
  EXPECT_EQ(cut(made, "abc"), "abc[0,3)");
  made["model"].erase("type");  // as early files were
  EXPECT_EQ(cut(made, "abc"), "abc[0,3)");
}

TEST(Bpe, WhatIsUnknown) {
  json made = letters();
  EXPECT_EQ(cut(made, "axc"), "a[0,1) c[1,2)") << "dropped without a piece for it, and it takes no room";
  made["model"]["unk_token"] = "?";
  EXPECT_EQ(cut(made, "axyb"), "a[0,1) ?[1,2) ?[2,3) b[3,4)");
  EXPECT_EQ(from(made).encode("axyb").unknown_count, 2u);
  made["model"]["fuse_unk"] = true;
  EXPECT_EQ(cut(made, "axyb"), "a[0,1) ?[1,3) b[3,4)");
  made["model"]["byte_fallback"] = true;
  EXPECT_EQ(cut(made, "a\u00e9b"), "a[0,1) <0xC3>[1,3) <0xA9>[1,3) b[3,4)");
  EXPECT_EQ(cut(made, "a\u00e8b"), "a[0,1) ?[1,3) b[3,4)") << "not all of its bytes are pieces";
}

TEST(Bpe, AWordThatIsAPieceNeedsNoMerges) {
  json made = letters();
  made["model"]["merges"] = json::array();
  EXPECT_EQ(cut(made, "abc"), "a[0,1) b[1,2) c[2,3)");
  made["model"]["ignore_merges"] = true;
  EXPECT_EQ(cut(made, "abc"), "abc[0,3)");
}

TEST(Bpe, PrefixAndSuffixOfCharacters) {
  json made = bpe_json(R"({"a":0,"b":1,"##b":2,"##b</w>":3,"a##b":4,"ab</w>":5})", R"([["a","##b</w>"]])");
  made["model"]["continuing_subword_prefix"] = "##";
  made["model"]["end_of_word_suffix"] = "</w>";
  EXPECT_EQ(cut(made, "ab"), "ab</w>[0,2)");
  EXPECT_EQ(cut(made, "abb"), "a[0,1) ##b[1,2) ##b</w>[2,3)");
}

TEST(Bpe, WhatItIsRefusedFor) {
  const auto refusal = [](const auto& change) {
    json made = letters();
    change(made["model"]);
    return error_text([&] { from(made); });
  };
  EXPECT_EQ(refusal([](json& m) {
              m["merges"].push_back({"a", "x"});
            }),
            "[tokenizer.json model merges[4]] expected a piece of the vocabulary; found \"x\"");
  EXPECT_EQ(refusal([](json& m) {
              m["merges"].push_back({"c", "c"});
            }),
            "[tokenizer.json model merges[4]] expected a piece of the vocabulary; found \"cc\"");
  EXPECT_EQ(refusal([](json& m) { m["merges"][1] = "a b c"; }),
            "[tokenizer.json model merges[1]] expected two pieces with one space between; found \"a b c\"");
  EXPECT_EQ(refusal([](json& m) { m["merges"][1] = 7; }),
            "[tokenizer.json model merges[1]] expected two pieces; found 7");
  EXPECT_EQ(refusal([](json& m) { m["unk_token"] = "!"; }),
            "[tokenizer.json model unk_token] expected a piece of the vocabulary; found \"!\"");
  EXPECT_NE(refusal([](json& m) { m["dropout"] = 0.1; }).find("expected none: merges are not left to chance"),
            std::string::npos);
}

// The words of a pattern, each in brackets.
std::string words(std::string_view expression, std::string_view text) {
  const auto pattern = regex_pattern(expression, "pattern");
  std::string result;
  for_each_part(*pattern, text, {0, static_cast<uint32_t>(text.size())},
                [&](Span span, bool) { result += "[" + std::string(text.substr(span.begin, span.size())) + "]"; });
  return result;
}

constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

TEST(WordPatterns, OfGpt2) {
  EXPECT_EQ(words(kGpt2, "don't I'LL  \n\n x"), "[don]['t][ I]['][LL][  \n\n][ x]");
  EXPECT_EQ(words(kGpt2, "\u0663\u0664 \u00bd \u2167a"), "[\u0663\u0664][ \u00bd][ \u2167][a]");
  EXPECT_EQ(words(kGpt2, "a  "), "[a][  ]");
  EXPECT_EQ(words(kGpt2, "''s don\u2019t"), "[''][s][ don][\u2019][t]");
  EXPECT_EQ(words(kGpt2, "x\u3000y"), "[x][\u3000][y]");
}

TEST(WordPatterns, OfLlama3) {
  EXPECT_EQ(words(kLlama3, "I'LL 12345 '\u017f'S"), "[I]['LL][ ][123][45][ '][\u017f]['S]");
  EXPECT_EQ(words(kLlama3, "a \n\n b\n"), "[a][ \n\n][ b][\n]");
  EXPECT_EQ(words(kLlama3, "(x) !!\r\n\t\ty"), "[(x][)][ !!\r\n][\t][\ty]");
}

TEST(WordPatterns, OtherExpressionsAreReadToo) {
  EXPECT_EQ(words("a+b", "caab ab"), "[c][aab][ ][ab]");
  EXPECT_EQ(
      error_text([] { regex_pattern("a\\Gb", "pattern"); }),
      "[pattern] expected a regular expression that is known here; found a backslash that is not known at byte 2 of "
      "\"a\\Gb\"");
}

std::string split(const json& pre_tokenizer, std::string_view text) {
  json made = letters();
  made["model"]["unk_token"] = "?";
  made["model"]["fuse_unk"] = true;
  made["pre_tokenizer"] = pre_tokenizer;
  return cut(made, text);
}

TEST(Split, BehavesInFiveWays) {
  const auto by = [](const char* behavior, bool invert = false) {
    return json{{"type", "Split"}, {"pattern", {{"String", "-"}}}, {"behavior", behavior}, {"invert", invert}};
  };
  EXPECT_EQ(split(by("Removed"), "x--y"), "?[0,1) ?[3,4)");
  EXPECT_EQ(split(by("Isolated"), "x--y"), "?[0,1) ?[1,2) ?[2,3) ?[3,4)");
  EXPECT_EQ(split(by("MergedWithPrevious"), "x--y"), "?[0,2) ?[2,3) ?[3,4)");
  EXPECT_EQ(split(by("MergedWithNext"), "x--y"), "?[0,1) ?[1,2) ?[2,4)");
  EXPECT_EQ(split(by("Contiguous"), "x--y"), "?[0,1) ?[1,3) ?[3,4)");
  EXPECT_EQ(split(by("Removed", true), "x--y"), "?[1,2) ?[2,3)");
}

TEST(Split, DigitsPunctuationDelimiters) {
  EXPECT_EQ(split({{"type", "Digits"}, {"individual_digits", true}}, "x12"), "?[0,1) ?[1,2) ?[2,3)");
  EXPECT_EQ(split({{"type", "Digits"}, {"individual_digits", false}}, "x12"), "?[0,1) ?[1,3)");
  EXPECT_EQ(split({{"type", "Punctuation"}, {"behavior", "Isolated"}}, "x.!"), "?[0,1) ?[1,2) ?[2,3)");
  EXPECT_EQ(split({{"type", "CharDelimiterSplit"}, {"delimiter", "|"}}, "x|y"), "?[0,1) ?[2,3)");
  EXPECT_EQ(error_text([] {
              split({{"type", "CharDelimiterSplit"}, {"delimiter", "||"}}, "");
            }),
            "[tokenizer.json pre_tokenizer delimiter] expected one character; found \"||\"");
}

json byte_level(bool prefix, bool trim) {
  json made =
      bpe_json(R"({"\u0120":0,"a":1,"\u0120a":2,"\u00c3":3,"\u00a9":4,"\u00c3\u00a9":5})", R"([["\u0120","a"]])");
  made["pre_tokenizer"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", prefix}, {"trim_offsets", trim}, {"use_regex", true}};
  made["post_processor"] = {{"type", "ByteLevel"}, {"add_prefix_space", prefix}, {"trim_offsets", trim}};
  made["decoder"] = {{"type", "ByteLevel"}};
  return made;
}

TEST(ByteLevel, BytesOfACharacterStandForAllOfIt) {
  EXPECT_EQ(cut(byte_level(false, false), "a\u00e9 a"), "a[0,1) \u00c3[1,3) \u00a9[1,3) \u0120a[3,5)");
}

TEST(ByteLevel, SpacesThatWereTrimmedOrPutIn) {
  EXPECT_EQ(cut(byte_level(false, true), "a a"), "a[0,1) \u0120a[2,3)");
  EXPECT_EQ(cut(byte_level(true, false), "a a"), "\u0120a[0,1) \u0120a[1,3)");
  EXPECT_EQ(cut(byte_level(true, true), "a a"), "\u0120a[0,1) \u0120a[2,3)");
}

TEST(ByteLevel, DecodesBytesAndMendsWhatIsNoText) {
  const Tokenizer tokenizer = from(byte_level(false, false));
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{2, 3, 4, 1}, false), " a\u00e9a");
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{1, 3, 1}, false), "a\ufffda");
}

TEST(Decoders, OneByOne) {
  const auto decoded = [](const json& decoder, const std::vector<int64_t>& ids) {
    json made = bpe_json(R"({" a":0,"b":1,"<0xC3>":2,"<0xA9>":3,"b</w>":4})", "[]");
    made["decoder"] = decoder;
    return from(made).decode(ids, false);
  };
  EXPECT_EQ(decoded({{"type", "Fuse"}}, {0, 1}), " ab");
  EXPECT_EQ(decoded({{"type", "ByteFallback"}}, {1, 2, 3, 1}), "b\u00e9b");
  EXPECT_EQ(decoded({{"type", "ByteFallback"}}, {1, 3, 2, 1}), "b\ufffd\ufffdb");
  EXPECT_EQ(decoded({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}, {0, 1}), "ab");
  EXPECT_EQ(decoded({{"type", "Replace"}, {"pattern", {{"String", "b"}}}, {"content", "cc"}}, {0, 1}), " acc");
  EXPECT_EQ(decoded({{"type", "BPEDecoder"}, {"suffix", "</w>"}}, {4, 4}), "b b");
}

TEST(PostProcessors, RobertaAndSequences) {
  json made = byte_level(false, false);
  made["model"]["vocab"]["<s>"] = 6;
  made["model"]["vocab"]["</s>"] = 7;
  const json roberta = {{"type", "RobertaProcessing"},
                        {"cls", {"<s>", 6}},
                        {"sep", {"</s>", 7}},
                        {"trim_offsets", true},
                        {"add_prefix_space", false}};
  made["post_processor"] = roberta;
  EXPECT_EQ(from(made).encode_ids("a a"), (std::vector<int64_t>{6, 1, 2, 7}));
  EXPECT_EQ(cut(made, "a a"), "a[0,1) \u0120a[2,3)");
  made["post_processor"] = {{"type", "Sequence"}, {"processors", {roberta}}};
  EXPECT_EQ(from(made).encode_ids("a a"), (std::vector<int64_t>{6, 1, 2, 7}));
}

}  // namespace
}  // namespace clearhead::text::tests
