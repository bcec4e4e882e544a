// SPDX-License-Identifier: Apache-2.0
// Tokenizers of GGUF files that nobody should have written, and texts that are none.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "clearhead/text/gguf_tokenizer.h"
#include "tests/text/small_gguf.h"

namespace clearhead::text {
namespace {

using tests::byte_level;
using tests::complaint;
using tests::gguf_string;
using tests::GgufBytes;
using tests::GgufPiece;
using tests::ids;
using tests::kByte;
using tests::kControl;
using tests::kNormal;
using tests::kUnknown;
using tests::le;
using tests::metadata;
using tests::scored;

const std::string kWhere = "[\"m\"] expected ";

GgufBytes with_merges(const std::vector<std::string>& merges) {
  GgufBytes file = metadata("gpt2", {{"a"}, {"b"}, {"c"}, {"ab"}, {"bc"}, {"abc"}});
  std::string bytes;
  for (const std::string& merge : merges) bytes += gguf_string(merge);
  file.array("tokenizer.ggml.merges", 8, merges.size(), bytes);
  return file;
}

TEST(HostileGguf, MergesOfWhatIsNoPieceAreRefused) {
  EXPECT_EQ(complaint(with_merges({"a b", "a x"})),
            "[\"m\" tokenizer merges[1]] expected a piece of the vocabulary; found \"x\"");
  EXPECT_EQ(complaint(with_merges({"c a"})),
            "[\"m\" tokenizer merges[0]] expected a piece of the vocabulary; found \"ca\"");
}

TEST(HostileGguf, MergesWithoutASpaceAreRefused) {
  for (const char* merge : {"ab", "", " ", " a", "a"}) {
    const std::string found = complaint(with_merges({"a b", merge}));
    EXPECT_TRUE(found.starts_with("[\"m\" tokenizer.ggml.merges[1]] expected two pieces with a space between; found "))
        << found;
  }
  EXPECT_EQ(complaint(metadata("gpt2", {{"a"}})), kWhere + "tokenizer.ggml.merges; found none");
}

// Other orders than the first would give a bc.
TEST(HostileGguf, OfEqualMergesTheFirstCounts) {
  EXPECT_EQ(ids(with_merges({"a b", "b c", "a b"}), "abc"), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(ids(with_merges({"b c", "a b", "b c"}), "abc"), (std::vector<int64_t>{0, 4}));
}

TEST(HostileGguf, TokensThatStandThereTwiceAreRefused) {
  for (const char* model : {"gpt2", "llama", "bert"}) {
    EXPECT_EQ(complaint(metadata(model, {{"a"}, {"b"}, {"a"}})),
              kWhere + "each token once; found \"a\" with ids 0 and 2");
  }
}

TEST(HostileGguf, ATokenWithoutTextIsNamedAfterItsId) {
  GgufBytes file = metadata("gpt2", {{"a"}, {""}, {""}});
  file.array("tokenizer.ggml.merges", 8, 0, "");
  const Tokenizer tokenizer = gguf_tokenizer(tests::read_gguf(file.text()).metadata());
  EXPECT_EQ(tokenizer.piece_of(1), "[EMPTY_1]");
  EXPECT_EQ(tokenizer.piece_of(2), "[EMPTY_2]");
  EXPECT_EQ(tokenizer.encode_ids("a"), (std::vector<int64_t>{0}));
}

TEST(HostileGguf, ScoresThatAreNotFiniteAreRefused) {
  for (const float score : {std::nanf(""), -std::nanf(""), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
    const std::string found = complaint(metadata("llama", {{"a"}, {"b", kNormal, score}}));
    EXPECT_TRUE(found.starts_with(kWhere + "a finite score of token 1; found ")) << found;
  }
}

TEST(HostileGguf, CountsThatDifferAreRefused) {
  GgufBytes types;
  types.word("tokenizer.ggml.model", "gpt2");
  types.array("tokenizer.ggml.tokens", 8, 2, gguf_string("a") + gguf_string("b"));
  for (const uint64_t count : {0, 1, 3}) {
    GgufBytes file = types;
    std::string bytes;
    for (uint64_t i = 0; i < count; ++i) bytes += le(kNormal);
    file.array("tokenizer.ggml.token_type", 5, count, bytes);
    EXPECT_EQ(complaint(file),
              kWhere + "tokenizer.ggml.token_type of 2 elements, one for each token; found " + std::to_string(count));
  }
}

TEST(HostileGguf, IdsOutsideTheVocabularyAreRefused) {
  for (const char* name : {"bos", "eos"}) {
    for (const uint32_t id : {6U, UINT32_MAX}) {
      GgufBytes file = with_merges({"a b"});
      file.u32("tokenizer.ggml." + std::string(name) + "_token_id", id);
      EXPECT_EQ(ids(file, "ab"), (std::vector<int64_t>{3})) << "nothing asks for it";
      file.value("tokenizer.ggml.add_" + std::string(name) + "_token", 7, le(true));
      EXPECT_EQ(complaint(file), kWhere + "tokenizer.ggml." + name + "_token_id below 6; found " + std::to_string(id));
    }
  }
}

// As in llama.cpp, whose usual ids these are.
TEST(HostileGguf, ATokenThatBeginsTextsWithoutAnIdHasTheUsualOne) {
  GgufBytes file = scored();
  EXPECT_EQ(ids(file, "ab"), (std::vector<int64_t>{1, 9}));
  GgufBytes few = with_merges({"a b"});
  few.value("tokenizer.ggml.add_bos_token", 7, le(true));
  EXPECT_EQ(ids(few, "ab"), (std::vector<int64_t>{3})) << "11 is no token of this vocabulary";
}

TEST(HostileGguf, ATextThatBringsItsFirstTokenHasItTwice) {
  GgufBytes file = scored();
  file.u32("tokenizer.ggml.bos_token_id", 1);
  EXPECT_EQ(ids(file, "<s>ab"), (std::vector<int64_t>{1, 1, 9}));
  const Tokenizer tokenizer = gguf_tokenizer(tests::read_gguf(file.text()).metadata());
  EXPECT_EQ(tokenizer.encode_ids("<s>ab", false), (std::vector<int64_t>{1, 9}));
  const auto tokens = tokenizer.encode("<s>ab").tokens;
  EXPECT_TRUE(tokens[0].special);
  EXPECT_FALSE(tokens[1].special) << "this one stands in the text, which is how it is told";
}

TEST(HostileGguf, UnknownTokensAreCutOutOfTheText) {
  EXPECT_EQ(ids(scored(), "ab<unk>ab"), (std::vector<int64_t>{1, 9, 0, 9}));
}

// Each is one U+FFFD for every maximal sequence; none may reach a table or end the process.
TEST(HostileGguf, BytesThatAreNoUtf8AreReplaced) {
  std::vector<GgufPiece> pieces = {{"<unk>", kUnknown}, {"<s>", kControl}};
  for (int byte = 0; byte < 256; ++byte) pieces.push_back({fmt::format("<0x{:02X}>", byte), kByte});
  const GgufBytes bytes = metadata("llama", pieces);
  const auto replaced = [](int count) {
    std::vector<int64_t> result = {1};
    result.insert(result.end(), {2 + 0xe2, 2 + 0x96, 2 + 0x81});
    for (int i = 0; i < count; ++i) result.insert(result.end(), {2 + 0xef, 2 + 0xbf, 2 + 0xbd});
    return result;
  };
  struct Case {
    std::string text;
    int sequences;
  };
  for (const Case& invalid : std::vector<Case>{{"\xff", 1},
                                               {"\xf4\x90\x80\x80", 4},
                                               {"\xed\xa0\x80", 3},
                                               {"\xc0\x80", 2},
                                               {"\xf0\x9f\x98", 1},
                                               {"\xe4\xbd", 1},
                                               {"\x80\xbf", 2},
                                               {"\xf8\x88\x80\x80\x80", 5}}) {
    EXPECT_EQ(ids(bytes, invalid.text), replaced(invalid.sequences)) << invalid.sequences;
    for (const char* name : {"default", "gpt-2", "llama-bpe", "deepseek-llm", "gpt-4o", "kimi-k2"}) {
      GgufBytes file = byte_level();
      file.word("tokenizer.ggml.pre", name);
      EXPECT_EQ(ids(file, "b" + invalid.text + "a"), (std::vector<int64_t>{1, 0})) << name;
    }
  }
}

}  // namespace
}  // namespace clearhead::text
