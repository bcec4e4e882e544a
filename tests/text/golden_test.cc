// SPDX-License-Identifier: Apache-2.0
// Tokenizers of real models against the tokenizers library, by the goldens of golden/make_golden.py.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "clearhead/base/memory.h"
#include "clearhead/format/gguf.h"
#include "clearhead/text/gguf_tokenizer.h"
#include "clearhead/text/tokenizer.h"
#include "tests/support/model_folder.h"
#include "tests/support/thread_clock.h"

namespace clearhead::text {
namespace {

const Tokenizer& minilm() {
  static const Tokenizer tokenizer = Tokenizer::from_file(tests::minilm_folder() / "tokenizer.json");
  return tokenizer;
}

const Tokenizer& e5() {
  static const Tokenizer tokenizer = Tokenizer::from_file(tests::e5_folder() / "tokenizer.json");
  return tokenizer;
}

using Row = std::vector<int64_t>;  // id, begin, end of each token

Row row_of(const Encoding& encoding) {
  Row row;
  for (const Token& token : encoding.tokens) {
    row.insert(row.end(), {token.id, static_cast<int64_t>(token.begin), static_cast<int64_t>(token.end)});
  }
  return row;
}

// A golden's spans are the gap since the last token and the length; 0 and 0 for a special token.
Row golden_row(const nlohmann::json& ids, const nlohmann::json& spans) {
  Row row;
  int64_t last = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto gap = spans[2 * i].get<int64_t>(), length = spans[2 * i + 1].get<int64_t>();
    const bool special = gap == 0 && length == 0;
    const int64_t begin = special ? 0 : last + gap;
    row.insert(row.end(), {ids[i].get<int64_t>(), begin, begin + length});
    if (!special) last = begin + length;
  }
  return row;
}

void expect_golden(const Tokenizer& tokenizer, const std::string& name) {
  const auto rows = nlohmann::json::parse(base::read_file(CLEARHEAD_TEST_DATA "/" + name, 1 << 20));
  ASSERT_GE(rows.size(), 500u);
  for (const auto& row : rows) {
    const auto text = row[0].get<std::string>();
    const Row expected = golden_row(row[1], row[2]);
    EXPECT_EQ(row_of(tokenizer.encode(text)), expected) << text;
    std::vector<int64_t> ids;
    for (size_t i = 0; i < expected.size(); i += 3) ids.push_back(expected[i]);
    EXPECT_EQ(tokenizer.encode_ids(text), ids) << text;
  }
}

TEST(Golden, EveryIdAndOffsetOfWordPiece) { expect_golden(minilm(), "bert_golden.json"); }

TEST(Golden, EveryIdAndOffsetOfBytePairs) {
  for (const std::string name : {"byte_bpe", "fallback_bpe"}) {
    SCOPED_TRACE(name);
    expect_golden(Tokenizer::from_file(CLEARHEAD_TEST_DATA "/" + name + ".json"), name + "_golden.json");
  }
}

// What a text becomes and what comes back: nothing is lost of bytes.
TEST(Golden, BytePairsDecodeToWhatTheyWere) {
  const auto rows = nlohmann::json::parse(base::read_file(CLEARHEAD_TEST_DATA "/byte_bpe_golden.json", 1 << 20));
  const Tokenizer bytes = Tokenizer::from_file(CLEARHEAD_TEST_DATA "/byte_bpe.json");
  const Tokenizer fallback = Tokenizer::from_file(CLEARHEAD_TEST_DATA "/fallback_bpe.json");
  for (const auto& row : rows) {
    const auto text = row[0].get<std::string>();
    EXPECT_EQ(bytes.decode(bytes.encode_ids(text), false), text);
    if (text.find("<s>") != std::string::npos || text.find("\u2581") != std::string::npos) continue;
    EXPECT_EQ(fallback.decode(fallback.encode_ids(text), true), text);
  }
}

TEST(Golden, EveryIdAndOffsetOfUnigram) { expect_golden(e5(), "unigram_golden.json"); }

// Made by golden/make_llama_golden.py; 21 bytes have no piece in this vocabulary.
TEST(Golden, EveryIdOfSmollm2IsThatOfLlamaCpp) {
  const auto file = format::GgufFile::open(tests::smollm2_file());
  const Tokenizer tokenizer = gguf_tokenizer(file.metadata());
  const auto texts = nlohmann::json::parse(base::read_file(CLEARHEAD_TEST_DATA "/bert_golden.json", 1 << 20));
  const auto golden = nlohmann::json::parse(base::read_file(CLEARHEAD_TEST_DATA "/smollm2_golden.json", 1 << 20));
  ASSERT_EQ(texts.size(), golden.size());
  ASSERT_GE(golden.size(), 500u);
  for (size_t i = 0; i < golden.size(); ++i) {
    const auto text = texts[i][0].get<std::string>();
    const auto expected = golden[i].get<std::vector<int64_t>>();
    EXPECT_EQ(tokenizer.encode_ids(text), expected) << text;
    std::vector<int64_t> ids;
    for (const Token& token : tokenizer.encode(text).tokens) ids.push_back(token.id);
    EXPECT_EQ(ids, expected) << text;
  }
}

TEST(Golden, TruncationAndPaddingOfTheFileAreReadAndNotCarriedOut) {
  EXPECT_EQ(minilm().file_truncation(), 128u);
  EXPECT_EQ(minilm().file_padding(), 128u);
  std::string text;
  for (int i = 0; i < 200; ++i) text += "cat ";
  EXPECT_EQ(minilm().encode(text).tokens.size(), 202u);
  EXPECT_EQ(minilm().encode("cat").tokens.size(), 3u);
  EXPECT_TRUE(minilm().warnings().empty());
}

TEST(Golden, VocabularyOfTheFile) {
  EXPECT_EQ(minilm().vocab_size(), 30522u);
  EXPECT_EQ(minilm().id_of("[CLS]"), 101);
  EXPECT_EQ(minilm().piece_of(2075), "##ing");
  EXPECT_EQ(minilm().id_of("no such piece"), std::nullopt);
}

TEST(Golden, DecodesAsTheLibraryDoes) {
  const Encoding encoding = minilm().encode("Don't stop, playing; it's 3.5 antidisestablishmentarianism!");
  std::vector<int64_t> ids;
  for (const Token& token : encoding.tokens) ids.push_back(token.id);
  EXPECT_EQ(minilm().decode(ids, true), "don ' t stop, playing ; it ' s 3. 5 antidisestablishmentarianism!");
  EXPECT_EQ(minilm().decode(ids, false),
            "[CLS] don ' t stop, playing ; it ' s 3. 5 antidisestablishmentarianism! [SEP]");
}

TEST(Golden, ChineseDecodesToWhatItWas) {
  const std::string text = "\u5c0f\u660e\u5728\u56fe\u4e66\u9986\u501f\u4e86\u4e00\u672c\u539a\u539a\u7684\u4e66\u3002";
  const Encoding encoding = e5().encode(text);
  EXPECT_EQ(encoding.unknown_count, 0u);
  std::string pieces;
  for (const Token& token : encoding.tokens) pieces += token.piece + " ";
  EXPECT_EQ(pieces,
            "<s> \u2581\u5c0f \u660e \u5728 \u56fe\u4e66\u9986 \u501f \u4e86 \u4e00\u672c \u539a \u539a \u7684 \u4e66 "
            "\u3002 </s> ");
  EXPECT_EQ(encoding.tokens[1].text, "\u5c0f");
  EXPECT_EQ(e5().decode(e5().encode_ids(text), true), text);
  EXPECT_EQ(e5().decode(e5().encode_ids(text), false), "<s> " + text + "</s>");
}

// Time must grow with the length alone; LongRuns has every kind of tokenizer.
TEST(Golden, AMegabyteWithoutASpace) {
  const auto timed = [](const std::string& text, size_t tokens, size_t unknown, const Tokenizer& tokenizer = minilm()) {
    const tests::ThreadClock clock;
    const Encoding encoding = tokenizer.encode(text);
    EXPECT_LT(clock.seconds(), tests::kSlower);
    EXPECT_EQ(encoding.tokens.size(), tokens + 2);
    EXPECT_EQ(encoding.unknown_count, unknown);
  };
  const auto repeated = [](std::string_view text, size_t count) {
    std::string result;
    for (size_t i = 0; i < count; ++i) result += text;
    return result;
  };
  timed(repeated("a", 1'000'000), 1, 1);
  timed(repeated(" ", 1'000'000), 0, 0);
  timed(repeated("!", 1'000'000), 1'000'000, 0);
  timed(repeated("[", 1'000'000), 1'000'000, 0);
  timed(repeated("\u4f60", 1'000'000), 1'000'000, 1'000'000);
  timed("a" + repeated("\u0301", 500'000), 1, 0);
  timed(repeated("\ud55c", 350'000), 1, 1);
  timed(repeated("\u302e\u302f", 100'000), 1, 1);
  timed(repeated("[MASK]", 100'000), 100'000, 0);
  timed(repeated("\xff", 1'000'000), 0, 0);
  timed(repeated(" ", 1'000'000), 1, 0, e5());
  timed(repeated("\u2581", 1'000'000), 1'000'000, 0, e5());
  timed(repeated("\xff", 1'000'000), 2, 1, e5());
  timed("e" + repeated("\u0301\u0316", 250'000), 250'001, 1, e5());
  const Tokenizer bytes = Tokenizer::from_file(CLEARHEAD_TEST_DATA "/byte_bpe.json");
  for (const char* run : {"a", " ", "!", "\n", "1"}) {
    EXPECT_GT(bytes.encode(repeated(run, 1'000'000)).tokens.size(), 1000u) << run;
  }
  const Tokenizer fallback = Tokenizer::from_file(CLEARHEAD_TEST_DATA "/fallback_bpe.json");
  EXPECT_GT(fallback.encode(repeated("ab ", 300'000)).tokens.size(), 1000u);
}

}  // namespace
}  // namespace clearhead::text
