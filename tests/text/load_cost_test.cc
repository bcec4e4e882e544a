// SPDX-License-Identifier: Apache-2.0
// Small files that cost much to read: each is read, or refused, in a time that grows with its size alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/error_text.h"
#include "tests/support/thread_clock.h"
#include "tests/text/small_gguf.h"
#include "tests/text/small_tokenizer.h"

namespace clearhead::text::tests {
namespace {

using clearhead::tests::complaint;
using clearhead::tests::error_text;
using clearhead::tests::GgufPiece;
using clearhead::tests::ids;
using clearhead::tests::kControl;
using clearhead::tests::kNormal;
using clearhead::tests::kSlower;
using clearhead::tests::kUnknown;
using clearhead::tests::metadata;
using clearhead::tests::ThreadClock;
using nlohmann::json;

// Runs of `letter` of every length up to `longest`.
void add_runs(char letter, size_t longest, std::vector<GgufPiece>& pieces) {
  for (size_t length = 1; length <= longest; ++length) {
    pieces.push_back({std::string(length, letter), kNormal, -static_cast<float>(length)});
  }
}

// A piece of which all beginnings and ends are pieces has as many merges as bytes.
TEST(LoadCost, MergesByScoreTakeStepsByTheBytesOfThePieces) {
  std::vector<GgufPiece> pieces = {{"<unk>", kUnknown}, {"<s>", kControl}};
  add_runs('a', 1000, pieces);
  const ThreadClock clock;
  EXPECT_EQ(ids(metadata("llama", pieces), "<s>" + std::string(8, 'a')).size(), 4u);
  EXPECT_LT(clock.seconds(), kSlower);
}

TEST(LoadCost, MoreMergesByScoreThanAnyVocabularyHasAreRefused) {
  std::vector<GgufPiece> pieces = {{"<unk>", kUnknown}, {"<s>", kControl}};
  for (char letter = 'a'; letter <= 'p'; ++letter) add_runs(letter, 1000, pieces);
  const ThreadClock clock;
  EXPECT_EQ(complaint(metadata("llama", pieces)),
            "[\"m\" tokenizer] expected at most 4194304 ways to put pieces together from two others; found more up to "
            "token 8632 of 16002");
  EXPECT_LT(clock.seconds(), 2 * kSlower);
}

TEST(LoadCost, APieceThatIsTooLongIsRefusedFirst) {
  std::vector<GgufPiece> pieces = {{"<unk>", kUnknown}, {"a"}};
  pieces.push_back({std::string(2'000'000, 'a')});
  const ThreadClock clock;
  for (const char* model : {"llama", "gpt2", "t5"}) {
    auto file = metadata(model, pieces);
    file.array("tokenizer.ggml.merges", 8, 0, "");
    if (std::string_view(model) == "t5") file.array("tokenizer.ggml.scores", 6, 3, std::string(12, '\0'));
    EXPECT_NE(complaint(file).find("expected pieces of at most 1024"), std::string::npos) << complaint(file);
  }
  EXPECT_LT(clock.seconds(), kSlower);
}

std::string refusal(const json& file) {
  return error_text([&] { from(file); });
}

json many(const json& item, size_t count) { return json(count, item); }

TEST(LoadCost, AddedTokensGoThroughANormalizerOfBoundedSteps) {
  const json lowercase = {{"type", "Lowercase"}};
  json file = small_json();
  for (int id = 18; id < 1000; ++id) {
    file["added_tokens"].push_back(added_token(id, fmt::format("T{}{}", id, std::string(100, 'A'))));
    file["added_tokens"].back()["normalized"] = true;
  }
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", many(lowercase, 256)}};
  const ThreadClock clock;
  EXPECT_EQ(refusal(file), "no error");
  file["normalizer"]["normalizers"].push_back(lowercase);
  EXPECT_EQ(refusal(file), "[tokenizer.json normalizer normalizers] expected at most 256 steps; found more");
  file["normalizer"] = {{"type", "Prepend"}, {"prepend", std::string(1 << 20, 'x')}};
  const std::string found = refusal(file);
  EXPECT_TRUE(
      found.starts_with("[tokenizer.json added_tokens] expected tokens that the file's normalizer can go "
                        "through; found \"T18"))
      << found;
  file["normalizer"] = lowercase;
  for (json& token : file["added_tokens"])
    token["content"] = std::string(600, 'A') + token["content"].get<std::string>();
  EXPECT_EQ(refusal(file),
            "[tokenizer.json added_tokens] expected at most 524288 bytes of tokens that are normalized; found more");
  EXPECT_LT(clock.seconds(), 3 * kSlower);
}

TEST(LoadCost, SpecialTokensAroundATextAreCounted) {
  json file = small_json();
  json& special = file["post_processor"]["special_tokens"]["[CLS]"];
  special["ids"] = many(1, 200'000);
  special["tokens"] = many("[CLS]", 200'000);
  EXPECT_EQ(refusal(file),
            "[tokenizer.json post_processor special_tokens \"[CLS]\"] expected at most 1024 ids; found more");
  special["ids"] = many(1, 1000);
  special["tokens"] = many("[CLS]", 1000);
  EXPECT_EQ(refusal(file), "no error");
  file["post_processor"]["single"].push_back(file["post_processor"]["single"][0]);
  EXPECT_EQ(refusal(file),
            "[tokenizer.json post_processor single] expected at most 1024 special tokens around a text; found more");
}

}  // namespace
}  // namespace clearhead::text::tests
