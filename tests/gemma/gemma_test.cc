// SPDX-License-Identifier: Apache-2.0
// gemma-3-270m from its GGUF: what transformers and llama.cpp say of the same file.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "clearhead/base/memory.h"
#include "clearhead/engine/session.h"
#include "clearhead/format/checkpoint.h"
#include "clearhead/text/gguf_tokenizer.h"
#include "tests/model/gguf_golden.h"
#include "tests/model/header_mutations.h"
#include "tests/support/model_folder.h"
#include "tests/text/mixed_text.h"

namespace clearhead {
namespace {

constexpr size_t kStep = 256;
// "Xiaoming borrowed a thick book in the library": <bos> xiao ming zai tushuguan jie leyi ben hou houde shu .
constexpr const char* kBook =
    "\u5c0f\u660e\u5728\u56fe\u4e66\u9986\u501f\u4e86\u4e00\u672c\u539a\u539a\u7684\u4e66\u3002";

std::filesystem::path gemma() { return tests::model_file("gemma-3-270m", "CLEARHEAD_MODEL_GEMMA"); }

// One process loads the model for all of them.
TEST(GemmaGolden, LogitsWeightsAndTheTokensThatFollowAreThoseOfTransformers) {
  const model::decoder::GgufGolden golden(gemma(), CLEARHEAD_TEST_DATA "/gemma_golden.safetensors", kStep);
  golden.expect_lengths();
  golden.expect_prompts();
  golden.expect_sentences(CLEARHEAD_TEST_DATA "/gemma_sentences.safetensors");
}

TEST(Gemma, TheBookLooksAtWhatItIsLikeWhereAndWhatIsDoneWithIt) {
  const engine::Session session = engine::Session::open(gemma().string());
  capture::Selection selection;
  selection.stages = {capture::Stage::weights};
  const capture::Trace trace = session.run(kBook, selection);
  const std::array pieces = {"<bos>",  "\u5c0f",       "\u660e", "\u5728", "\u56fe\u4e66\u9986",
                             "\u501f", "\u4e86\u4e00", "\u672c", "\u539a", "\u539a\u7684",
                             "\u4e66", "\u3002"};
  ASSERT_EQ(trace.info().tokens.size(), pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) EXPECT_EQ(trace.info().tokens[i].piece, pieces[i]);
  constexpr size_t kLibrary = 4, kBorrow = 5, kOne = 6, kThick = 8, kThickOf = 9, kBookAt = 10;
  const auto weight = [&](size_t layer, size_t head, size_t key) {
    std::vector<float> row(pieces.size());
    trace.source(capture::Stage::weights, layer).row(0, head, kBookAt, row);
    return row[key];
  };
  EXPECT_NEAR(weight(2, 3, kThickOf), 0.65, 0.005);
  EXPECT_NEAR(weight(2, 3, kThick), 0.13, 0.005);
  EXPECT_NEAR(weight(4, 1, kThickOf), 0.56, 0.005);
  EXPECT_NEAR(weight(4, 1, kThick), 0.17, 0.005);
  EXPECT_NEAR(weight(3, 3, kLibrary), 0.57, 0.005);
  EXPECT_NEAR(weight(6, 0, kLibrary), 0.35, 0.005);
  EXPECT_NEAR(weight(7, 3, kBorrow), 0.29, 0.005);
  EXPECT_NEAR(weight(7, 3, kOne), 0.28, 0.005);
}

// gemma_golden.json: the ids of llama.cpp for each text of tests/text, made by tests/text/golden/make_llama_golden.py.
TEST(Gemma, AThousandChangesOfItsHeaderAreRefusedOrRead) { model::mutations::expect_gguf(gemma()); }

TEST(Gemma, EveryIdIsThatOfLlamaCpp) {
  const auto texts = nlohmann::json::parse(base::read_file(CLEARHEAD_TEXTS, 1 << 20));
  const auto golden = nlohmann::json::parse(base::read_file(CLEARHEAD_TEST_DATA "/gemma_golden.json", 1 << 20));
  const auto checkpoint = format::Checkpoint::open(gemma());
  const text::Tokenizer tokenizer = text::gguf_tokenizer(*checkpoint.gguf_metadata());
  ASSERT_GE(texts.size(), 654u);
  ASSERT_EQ(golden.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto text = texts[i][0].get<std::string>();
    const std::vector<int64_t> ids = tokenizer.encode_ids(text);
    EXPECT_EQ(ids, golden[i].get<std::vector<int64_t>>()) << text;
    EXPECT_EQ(tokenizer.decode(ids, false), "<bos>" + text);
  }
}

TEST(Gemma, EveryIdOfMixedTextIsThatOfLlamaCpp) {
  const auto checkpoint = format::Checkpoint::open(gemma());
  tests::expect_mixed_golden(text::gguf_tokenizer(*checkpoint.gguf_metadata()), tests::MixedText::of(CLEARHEAD_TEXTS),
                             CLEARHEAD_TEST_DATA "/gemma_mixed.json", false);
}

}  // namespace
}  // namespace clearhead
