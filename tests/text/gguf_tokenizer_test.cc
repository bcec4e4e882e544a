// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/gguf_tokenizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/format/gguf_bytes.h"
#include "tests/support/error_text.h"

namespace clearhead::text {
namespace {

using tests::error_text;
using tests::gguf_string;
using tests::GgufBytes;
using tests::le;

constexpr int kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kByte = 6;
const std::string kSpace = "\u0120", kLine = "\u2581";  // a space in byte-level pieces, and in scored ones

struct Piece {
  std::string text;
  int type = kNormal;
  float score = 0;
};

// The metadata of a tokenizer.
GgufBytes metadata(const std::string& model, const std::vector<Piece>& pieces) {
  GgufBytes file;
  std::string tokens, types, scores;
  for (const Piece& piece : pieces) {
    tokens += gguf_string(piece.text);
    types += le(piece.type);
    scores += le(piece.score);
  }
  file.word("tokenizer.ggml.model", model);
  file.array("tokenizer.ggml.tokens", 8, pieces.size(), tokens);
  file.array("tokenizer.ggml.token_type", 5, pieces.size(), types);
  if (model == "llama") file.array("tokenizer.ggml.scores", 6, pieces.size(), scores);
  return file;
}

// 0 a, 1 b, 2 ab, 3 space, 4 space a, 5 and 6 digits, 7 both, 8 control, 9 user-defined
GgufBytes byte_level() {
  GgufBytes file = metadata("gpt2", {{"a"},
                                     {"b"},
                                     {"ab"},
                                     {kSpace},
                                     {kSpace + "a"},
                                     {"1"},
                                     {"2"},
                                     {"12"},
                                     {"<|x|>", kControl},
                                     {"ba ba", kUserDefined}});
  const std::string merges = gguf_string("a b") + gguf_string(kSpace + " a") + gguf_string("1 2");
  file.array("tokenizer.ggml.merges", 8, 3, merges);
  return file;
}

std::vector<int64_t> ids(const GgufBytes& file, std::string_view text) {
  return gguf_tokenizer(tests::read_gguf(file.text()).metadata()).encode_ids(text);
}

std::string complaint(const GgufBytes& file) {
  return error_text([&] { gguf_tokenizer_json(tests::read_gguf(file.text()).metadata()); });
}

TEST(GgufTokenizer, ByteLevelPiecesAreMergedInTheOrderOfTheMerges) {
  const GgufBytes file = byte_level();
  EXPECT_EQ(ids(file, "ab a"), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(ids(file, "b12"), (std::vector<int64_t>{1, 7}));
}

TEST(GgufTokenizer, SmollmCutsDigitsApart) {
  GgufBytes file = byte_level();
  file.word("tokenizer.ggml.pre", "smollm");
  EXPECT_EQ(ids(file, "b12"), (std::vector<int64_t>{1, 5, 6}));
  EXPECT_EQ(ids(file, "b 1"), (std::vector<int64_t>{1, 3, 5}));
}

TEST(GgufTokenizer, ControlAndUserDefinedTokensAreCutOutFirst) {
  EXPECT_EQ(ids(byte_level(), "a<|x|>ba bab"), (std::vector<int64_t>{0, 8, 9, 1}));
}

TEST(GgufTokenizer, ATokenBeginsTheTextWhereTheFileSaysSo) {
  GgufBytes file = byte_level();
  file.u32("tokenizer.ggml.bos_token_id", 8);
  EXPECT_EQ(ids(file, "a"), (std::vector<int64_t>{0}));
  file.value("tokenizer.ggml.add_bos_token", 7, le(true));
  EXPECT_EQ(ids(file, "a"), (std::vector<int64_t>{8, 0}));
}

// 0 unknown, 1 begin, 2 and 3 bytes, 4 space, 5 a, 6 b, 7 space a, 8 ab, 9 space ab
GgufBytes scored() {
  return metadata("llama", {{"<unk>", kUnknown},
                            {"<s>", kControl},
                            {"<0xC3>", kByte},
                            {"<0xA9>", kByte},
                            {kLine, kNormal, -9},
                            {"a", kNormal, -8},
                            {"b", kNormal, -8},
                            {kLine + "a", kNormal, -1},
                            {"ab", kNormal, -2},
                            {kLine + "ab", kNormal, -3}});
}

TEST(GgufTokenizer, ScoredPiecesAreMergedByScore) {
  GgufBytes file = scored();
  file.u32("tokenizer.ggml.bos_token_id", 1);
  EXPECT_EQ(ids(file, "ab"), (std::vector<int64_t>{1, 9}));
  EXPECT_EQ(ids(file, "bab"), (std::vector<int64_t>{1, 4, 6, 8}));
  EXPECT_EQ(ids(file, "a\u00e9"), (std::vector<int64_t>{1, 7, 2, 3}));
  file.value("tokenizer.ggml.add_space_prefix", 7, le(false));
  EXPECT_EQ(ids(file, "ab ab"), (std::vector<int64_t>{1, 8, 9}));
  const Tokenizer tokenizer = gguf_tokenizer(tests::read_gguf(file.text()).metadata());
  EXPECT_EQ(tokenizer.decode(tokenizer.encode_ids("ab a\u00e9"), true), "ab a\u00e9");
}

TEST(GgufTokenizer, NamesOfOneKindCutAlike) {
  for (const char* name : {"starcoder", "refact", "exaone"}) {
    GgufBytes file = byte_level();
    file.word("tokenizer.ggml.pre", name);
    EXPECT_EQ(ids(file, "b12"), (std::vector<int64_t>{1, 5, 6})) << name;
  }
  for (const char* name : {"", " ", "gpt-2 phi-2", "gpt"}) {
    GgufBytes file = byte_level();
    file.word("tokenizer.ggml.pre", name);
    EXPECT_NE(complaint(file), "") << name;
  }
}

TEST(GgufTokenizer, Llama3TextsBeginWithATokenUnlessTheFileSaysOtherwise) {
  GgufBytes file = byte_level();
  file.word("tokenizer.ggml.pre", "llama-bpe").u32("tokenizer.ggml.bos_token_id", 8);
  EXPECT_EQ(ids(file, "a"), (std::vector<int64_t>{8, 0}));
  file.u32("tokenizer.ggml.eos_token_id", 8).value("tokenizer.ggml.add_eos_token", 7, le(true));
  EXPECT_EQ(ids(file, "a"), (std::vector<int64_t>{8, 0, 8}));
  file.value("tokenizer.ggml.add_bos_token", 7, le(false));
  EXPECT_EQ(ids(file, "a"), (std::vector<int64_t>{0, 8}));
}

TEST(GgufTokenizer, WordPieceIsStoredWithMarksInFrontOfWords) {
  const GgufBytes file = metadata("bert", {{"[PAD]", kControl},
                                           {"[UNK]", kControl},
                                           {"[CLS]", kControl},
                                           {"[SEP]", kControl},
                                           {kLine + "play"},
                                           {"ing"},
                                           {kLine + "ing"},
                                           {kLine + "!"}});
  EXPECT_EQ(ids(file, "Playing \u00edng! x"), (std::vector<int64_t>{2, 4, 5, 6, 7, 1, 3}));
  EXPECT_EQ(ids(file, "play[SEP]"), (std::vector<int64_t>{2, 4, 3, 3}));
  const Tokenizer tokenizer = gguf_tokenizer(tests::read_gguf(file.text()).metadata());
  EXPECT_EQ(tokenizer.decode(tokenizer.encode_ids("playing!"), true), "playing!");
}

TEST(GgufTokenizer, BytesWithoutAPieceAreCounted) {
  const Tokenizer tokenizer = gguf_tokenizer(tests::read_gguf(byte_level().text()).metadata());
  EXPECT_EQ(tokenizer.encode("ab a").left_out, 0U);
  const Encoding encoding = tokenizer.encode("a\x04\u4f60<|x|>b");
  EXPECT_EQ(encoding.left_out, 4U);
  EXPECT_EQ(encoding.tokens.size(), 3U);
}

TEST(GgufTokenizer, WhatDoesNotFitIsRefusedByName) {
  const std::string where = "[\"m\"] expected ";
  EXPECT_EQ(complaint(metadata("rwkv", {{"a"}})),
            where + "tokenizer.ggml.model to be one of: gpt2, llama, bert; found \"rwkv\"");
  EXPECT_EQ(complaint(metadata("bert", {{"[CLS]"}, {"[SEP]"}})),
            where + "tokenizer.ggml.unknown_token_id or the token [UNK]; found neither");
  EXPECT_EQ(complaint(metadata("gpt2", {})), where + "tokenizer.ggml.tokens with at least one token; found none");
  GgufBytes other = byte_level();
  other.word("tokenizer.ggml.pre", "whitespace");
  const std::string found = complaint(other);
  EXPECT_TRUE(found.starts_with(where + "tokenizer.ggml.pre to be one of: gpt-2 ")) << found;
  EXPECT_TRUE(found.ends_with("; found \"whitespace\"")) << found;
  GgufBytes few = metadata("gpt2", {{"a"}, {"b"}});
  few.array("tokenizer.ggml.scores", 6, 1, le(0.0f));
  EXPECT_EQ(complaint(few), where + "tokenizer.ggml.scores of 2 elements, one for each token; found 1");
  EXPECT_EQ(complaint(metadata("gpt2", {{"a\xff"}})), where + "token 0 in UTF-8; found \"a\\xff\"");
  GgufBytes begin = byte_level();
  begin.u32("tokenizer.ggml.bos_token_id", 10).value("tokenizer.ggml.add_bos_token", 7, le(true));
  EXPECT_EQ(complaint(begin), where + "tokenizer.ggml.bos_token_id below 10; found 10");
}

}  // namespace
}  // namespace clearhead::text
