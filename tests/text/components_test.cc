// SPDX-License-Identifier: Apache-2.0
// Normalizers, pre-tokenizers and decoders one by one: words and where they came from. Large comparisons with the
// tokenizers library: golden/.
#include <gtest/gtest.h>

#include "tests/support/error_text.h"
#include "tests/text/small_tokenizer.h"

namespace clearhead::text::tests {
namespace {

using nlohmann::json;

// A tokenizer whose model makes one token of each word: every piece is unknown.
json words_json(const json& normalizer, const json& pre_tokenizer, const json& decoder = nullptr) {
  return {
      {"version", "1.0"},
      {"added_tokens", json::array()},
      {"normalizer", normalizer},
      {"pre_tokenizer", pre_tokenizer},
      {"post_processor", nullptr},
      {"decoder", decoder},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", "?"},
        {"continuing_subword_prefix", "##"},
        {"max_input_chars_per_word", 100},
        {"vocab",
         {{"?", 0}, {"a", 1}, {"\u2581a", 2}, {"fi", 3}, {"\u00e9", 4}, {"\u2581", 5}, {" a", 6}, {"\ud55c", 7}}}}}};
}

std::string cut(const json& normalizer, const json& pre_tokenizer, std::string_view text) {
  return shown(from(words_json(normalizer, pre_tokenizer)).encode(text));
}

json metaspace(const char* scheme, bool split = true) {
  return {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", scheme}, {"split", split}};
}

TEST(Metaspace, MarksAndCuts) {
  EXPECT_EQ(cut(nullptr, metaspace("always"), "a a"), "\u2581a[0,1) \u2581a[1,3)");
  EXPECT_EQ(cut(nullptr, metaspace("never"), "a a"), "a[0,1) \u2581a[1,3)");
  EXPECT_EQ(cut(nullptr, metaspace("always"), " a  a"), "\u2581a[0,2) \u2581[2,3) \u2581a[3,5)");
  EXPECT_EQ(cut(nullptr, metaspace("always"), "\u2581a "), "\u2581a[0,4) \u2581[4,5)");
  EXPECT_EQ(cut(nullptr, metaspace("always", false), "a a"), "?[0,3)");
  EXPECT_EQ(cut(nullptr, metaspace("always"), ""), "");
}

TEST(Metaspace, FirstIsTheBeginningOfTheText) {
  json made = words_json(nullptr, metaspace("first"));
  made["added_tokens"].push_back(added_token(8, "<s>"));
  EXPECT_EQ(shown(from(made).encode("a<s>a a")), "\u2581a[0,1) <s>[1,4) a[4,5) \u2581a[5,7)");
  made["pre_tokenizer"] = metaspace("always");
  EXPECT_EQ(shown(from(made).encode("a<s>a a")), "\u2581a[0,1) <s>[1,4) \u2581a[4,5) \u2581a[5,7)");
}

TEST(Metaspace, EarlyFilesSayItOtherwise) {
  json early = {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"add_prefix_space", false}};
  EXPECT_EQ(cut(nullptr, early, "a a"), "a[0,1) \u2581a[1,3)");
  early["prepend_scheme"] = "always";
  EXPECT_EQ(clearhead::tests::error_text([&] { cut(nullptr, early, "a"); }),
            "[tokenizer.json pre_tokenizer] expected prepend_scheme that agrees with add_prefix_space; found never and "
            "another scheme");
  early = {{"type", "Metaspace"}, {"replacement", "ab"}};
  EXPECT_EQ(clearhead::tests::error_text([&] { cut(nullptr, early, "a"); }),
            "[tokenizer.json pre_tokenizer replacement] expected one character; found \"ab\"");
}

TEST(Metaspace, Decodes) {
  const json decoder = metaspace("always");
  EXPECT_EQ(from(words_json(nullptr, nullptr, decoder)).decode(std::vector<int64_t>{2, 2, 1, 5}, false), "a aa ");
  EXPECT_EQ(from(words_json(nullptr, nullptr, metaspace("never"))).decode(std::vector<int64_t>{2, 2}, false), " a a");
  const json both = {{"type", "Sequence"},
                     {"decoders", {decoder, {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", false}}}}};
  EXPECT_EQ(from(words_json(nullptr, nullptr, both)).decode(std::vector<int64_t>{2, 1}, false), "a a");
}

TEST(WhitespaceSplit, DropsWhiteSpaceOfEveryKind) {
  const json split = {{"type", "WhitespaceSplit"}};
  EXPECT_EQ(cut(nullptr, split, " a\t\u3000a\u00a0\n"), "a[1,2) a[6,7)");
  const json both = {{"type", "Sequence"}, {"pretokenizers", {split, metaspace("always")}}};
  EXPECT_EQ(cut(nullptr, both, " a  a"), "\u2581a[1,2) \u2581a[4,5)");
}

json form(const char* name) { return {{"type", name}}; }

// A composed character stands where its first part stood, as in the tokenizers library.
TEST(NormalForm, KnowsWhereThingsCameFrom) {
  EXPECT_EQ(cut(form("NFC"), nullptr, "e\u0301"), "\u00e9[0,1)");
  EXPECT_EQ(cut(form("NFKC"), nullptr, "\ufb01"), "fi[0,3)");
  EXPECT_EQ(cut(form("NFC"), nullptr, "\u1112\u1161\u11ab"), "\ud55c[0,3)");
  EXPECT_EQ(cut(form("NFKC"), {{"type", "WhitespaceSplit"}}, "a\u3000a"), "a[0,1) a[4,5)");
}

std::string normalized(const json& normalizer, const std::string& text) {
  json made = words_json(normalizer, nullptr);
  made["model"] = {{"type", "Unigram"}, {"unk_id", 0}, {"byte_fallback", true}, {"vocab", json::array()}};
  made["model"]["vocab"].push_back({"<unk>", 0.0});
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof(name), "<0x%02X>", byte);
    made["model"]["vocab"].push_back({name, -50.0});
  }
  std::string result;
  for (const Token& token : from(made).encode(text).tokens) {
    result += static_cast<char>(std::stoi(token.piece.substr(3, 2), nullptr, 16));
  }
  return result;
}

TEST(NormalForm, AllFour) {
  EXPECT_EQ(normalized(form("NFD"), "\u00e9\ud55c"), "e\u0301\u1112\u1161\u11ab");
  EXPECT_EQ(normalized(form("NFKD"), "\u00bd\ufb01"), "1\u20442fi");
  EXPECT_EQ(normalized(form("NFC"), "q\u0307\u0323 \u1e9b\u0323"), "q\u0323\u0307 \u1e9b\u0323");
  EXPECT_EQ(normalized(form("NFKC"), "\u1e9b\u0323 \u337f\uff0c"), "\u1e69 \u682a\u5f0f\u4f1a\u793e,");
  EXPECT_EQ(normalized(form("NFC"), "\u09c7\u09be\u0958"), "\u09cb\u0915\u093c") << "what is left out of composition";
  EXPECT_EQ(normalized(form("NFKC"), "a\u0315\u0300\u05ae\u0062"), "\u00e0\u05ae\u0315b");
}

TEST(SimpleNormalizers, OneByOne) {
  EXPECT_EQ(normalized({{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}}, " \u3000a "), "a ");
  EXPECT_EQ(normalized({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}}, " a\n\u2003"), " a");
  EXPECT_EQ(normalized(form("Lowercase"), "A\u0130\u03a3"), "ai\u0307\u03c3");
  EXPECT_EQ(normalized(form("StripAccents"), "e\u0301\u00e9\u0488"), "e\u00e9");
  EXPECT_EQ(normalized(form("Nmt"), "a\x01\tb\u200b\ufeff"), "a b  ");
  EXPECT_EQ(normalized({{"type", "Prepend"}, {"prepend", "<<"}}, "a"), "<<a");
  EXPECT_EQ(normalized({{"type", "Replace"}, {"pattern", {{"String", "ab"}}}, {"content", "\u4f60"}}, "xabab"),
            "x\u4f60\u4f60");
  EXPECT_EQ(normalized({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}}, "   a b  "),
            " a b ");
  EXPECT_EQ(normalized({{"type", "Sequence"}, {"normalizers", json::array()}}, "A"), "A");
  EXPECT_EQ(normalized({{"type", "Sequence"}, {"normalizers", {form("NFD"), form("StripAccents"), form("Lowercase")}}},
                       "\u00c9"),
            "e");
}

TEST(ByteLevelNormalizer, WritesBytesAsCharacters) {
  EXPECT_EQ(normalized({{"type", "ByteLevel"}}, "a \u00e9\n"), "a\u0120\u00c3\u00a9\u010a");
  EXPECT_EQ(normalized({{"type", "ByteLevel"}}, ""), "");
}

TEST(SimplePreTokenizers, CutByWordsScriptsAndLengths) {
  const json whitespace = {{"type", "Whitespace"}}, scripts = {{"type", "UnicodeScripts"}};
  EXPECT_EQ(cut(nullptr, whitespace, " a, fi_1!? "), "a[1,2) ?[2,3) ?[4,8) ?[8,10)");
  EXPECT_EQ(cut(nullptr, whitespace, "\u3000\u00a0"), "");
  EXPECT_EQ(cut(nullptr, scripts, " a fi\u4e00\u3042\u30fc1a"), "?[1,5) ?[5,14) ?[14,15) a[15,16)");
  EXPECT_EQ(cut(nullptr, scripts, "  "), "") << "white space at the beginning is lost, as in the library";
  EXPECT_EQ(cut(nullptr, {{"type", "FixedLength"}, {"length", 2}}, "fi\u4e00aa"), "fi[0,2) ?[2,6) a[6,7)");
  EXPECT_EQ(cut(nullptr, {{"type", "FixedLength"}}, "abcdefg"), "?[0,5) ?[5,7)");
  const json both = {{"type", "Sequence"}, {"pretokenizers", {whitespace, {{"type", "FixedLength"}, {"length", 1}}}}};
  EXPECT_EQ(cut(nullptr, both, "aa a"), "a[0,1) a[1,2) a[3,4)");
  EXPECT_EQ(clearhead::tests::error_text([&] {
              cut(nullptr, {{"type", "FixedLength"}, {"length", 0}}, "a");
            }),
            "[tokenizer.json pre_tokenizer length] expected at least 1; found 0");
}

TEST(WordLevel, EachWordIsOnePiece) {
  json made = words_json(nullptr, {{"type", "Whitespace"}});
  made["model"] = {{"type", "WordLevel"}, {"unk_token", "?"}, {"vocab", {{"?", 0}, {"fi", 1}}}};
  const Encoding encoding = from(made).encode("fi fie");
  EXPECT_EQ(shown(encoding), "fi[0,2) ?[3,6)");
  EXPECT_EQ(encoding.unknown_count, 1u);
  made["model"]["unk_token"] = "[UNK]";
  EXPECT_EQ(clearhead::tests::error_text([&] { from(made); }),
            "[tokenizer.json model] expected unk_token to be in the vocabulary; found \"[UNK]\"");
}

TEST(CtcDecoder, DropsWhatIsHeardTwiceAndPauses) {
  json made = words_json(nullptr, nullptr,
                         {{"type", "CTC"}, {"pad_token", "<pad>"}, {"word_delimiter_token", "|"}, {"cleanup", true}});
  made["model"]["vocab"] = {{"?", 0}, {"a", 1}, {"<pad>", 2}, {"|", 3}, {" .", 4}};
  const std::vector<int64_t> heard = {1, 1, 2, 1, 3, 3, 1, 4, 3};
  EXPECT_EQ(from(made).decode(heard, false), "aa a. ");
  EXPECT_EQ(from(made).decode(std::vector<int64_t>{2, 2}, false), "");
  made["decoder"]["cleanup"] = false;
  EXPECT_EQ(from(made).decode(heard, false), "aa|a .|");
  made["decoder"]["pad_token"] = "";
  EXPECT_EQ(clearhead::tests::error_text([&] { from(made); }),
            "[tokenizer.json decoder pad_token] expected a text; found an empty one");
}

TEST(SimpleNormalizers, WhatTheyAreRefusedFor) {
  EXPECT_EQ(clearhead::tests::error_text([&] {
              normalized({{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", ""}}, "");
            }),
            "[tokenizer.json normalizer pattern] expected a text to look for; found an empty one");
  EXPECT_EQ(clearhead::tests::error_text([&] {
              normalized({{"type", "Sequence"}, {"normalizers", 1}}, "");
            }),
            "[tokenizer.json normalizer normalizers] expected a list; found 1");
}

}  // namespace
}  // namespace clearhead::text::tests
