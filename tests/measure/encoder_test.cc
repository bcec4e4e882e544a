// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "clearhead/measure/encoder_run.h"
#include "clearhead/measure/tokenizer_run.h"
#include "tests/support/error_text.h"

namespace clearhead {
namespace {

constexpr const char* kTokenizer = R"({"added_tokens": [], "normalizer": {"type": "BertNormalizer", "clean_text": true,
  "handle_chinese_chars": true, "strip_accents": null, "lowercase": true}, "pre_tokenizer": {"type": "BertPreTokenizer"},
  "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
  "vocab": {"[UNK]": 0, "the": 1, "cat": 2, "##the": 3, "##cat": 4, ".": 5, ",": 6}}})";

TEST(EncoderRunTest, GivesEachTextItsHiddenState) {
  const auto session = engine::Session::open("toy d_model=32 heads=4 seed=7");
  tensor::Tensor ids(tensor::DType::i64, {2, 3});
  const std::vector<int64_t> values{5, 6, 7, 8, 9, 10};
  std::ranges::copy(values, ids.as<int64_t>().begin());
  measure::EncoderRun run(session, ids);
  run.run();
  for (const size_t text : {0, 1}) {
    const auto want = session.transformer().run({std::span(values).subspan(3 * text, 3), {}});
    EXPECT_TRUE(std::ranges::equal(want.as<float>(), run.hidden().as<float>().subspan(3 * 32 * text, 3 * 32)));
  }
}

TEST(EncoderRunTest, RefusesIdsOfAnotherType) {
  const auto session = engine::Session::open("toy d_model=32 heads=4 seed=7");
  const tensor::Tensor wrong({2, 3});
  EXPECT_EQ(tests::error_text([&] { measure::EncoderRun(session, wrong); }),
            "usage: [encoder inputs] expected ids of type I64 and shape [batch, seq]; found F32 [2, 3]");
}

TEST(TokenizerRunTest, SampleIsTheSameEveryTimeAndFullyKnown) {
  const auto tokenizer = text::Tokenizer::from_json(kTokenizer, "test");
  const std::string sample = measure::sample_text(tokenizer, 5000);
  EXPECT_GE(sample.size(), 5000u);
  EXPECT_EQ(sample, measure::sample_text(tokenizer, 5000));
  EXPECT_GT(std::ranges::count(sample, '\n'), 10);
  EXPECT_EQ(tokenizer.encode(sample).unknown_count, 0u);
  const size_t tokens = measure::tokenize_lines(tokenizer, sample, true);
  EXPECT_EQ(tokens, measure::tokenize_lines(tokenizer, sample, false));
  EXPECT_EQ(tokens, tokenizer.encode_ids(sample).size());
}

}  // namespace
}  // namespace clearhead
