// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/gguf_tokenizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/text/small_gguf.h"

namespace clearhead::text {
namespace {

using tests::byte_level;
using tests::complaint;
using tests::GgufBytes;
using tests::ids;
using tests::kControl;
using tests::kLine;
using tests::le;
using tests::metadata;
using tests::scored;

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

// Whichever of the two stands first in the vocabulary, as in llama.cpp.
TEST(GgufTokenizer, OfEqualScoresTheLeftmostIsMerged) {
  EXPECT_EQ(
      ids(metadata("llama", {{"a"}, {"<s>", kControl}, {"b"}, {"c"}, {"bc", 1, -5}, {"ab", 1, -5}, {kLine}}), "abc"),
      (std::vector<int64_t>{1, 6, 5, 3}));
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
            where + "tokenizer.ggml.model to be one of: gpt2, llama, bert, t5; found \"rwkv\"");
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
