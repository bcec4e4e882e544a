// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/attention_map.h"

#include <gtest/gtest.h>

#include "clearhead/views/map_layout.h"
#include "tests/support/error_text.h"
#include "tests/views/traces.h"

namespace clearhead::views {
namespace {

using tests::error_text;

// [CLS] un ##believ ##able cats [SEP], one head.
capture::Trace pieces_trace() {
  auto tokens = tests::tokens_of({"[CLS]", "un", "believ", "able", "cats", "[SEP]"});
  size_t at = 0;
  for (size_t i = 1; i <= 3; ++i) {
    tokens[i].begin = at;
    tokens[i].end = at += tokens[i].text.size();
    tokens[i].continues_word = i > 1;
  }
  tokens[4].begin = at + 1;
  tokens[4].end = at + 5;
  capture::TraceInfo info = tests::info_of(std::move(tokens), 1, 1);
  info.text = "Unbelievable cats";
  capture::Trace trace(info);
  tensor::Tensor weights(tensor::Shape{1, 1, 6, 6});
  const auto values = weights.as<float>();
  for (size_t query = 0; query < 6; ++query) {
    // Rows: 1/8 on each of six keys, and the last quarter on key query.
    for (size_t key = 0; key < 6; ++key) values[query * 6 + key] = 0.125F + (key == query ? 0.25F : 0);
  }
  trace.add(capture::Stage::weights, 0, std::move(weights));
  return trace;
}

TEST(AttentionMap, IsTheHeadAsRecorded) {
  const auto trace = tests::cat_trace();
  const AttentionMap map = attention_map(trace, 5, 11, {});
  EXPECT_EQ(map.model, "minilm");
  EXPECT_EQ(map.kind, HeadKind::content);
  ASSERT_EQ(map.row(3).size(), 8U);
  EXPECT_NEAR(map.row(3)[2], 0.8913F, 1e-4);
  EXPECT_EQ(map.hidden_mass, 0);
  EXPECT_FALSE(map.from.has_value());
}

TEST(AttentionMap, WordsAreSumsOverAttendedAndMeansOverAttendingPieces) {
  MapOptions options;
  options.words = true;
  options.from = 3;
  const capture::Trace trace = pieces_trace();
  const AttentionMap map = attention_map(trace, 0, 0, options);
  ASSERT_EQ(map.tokens.size(), 4U);
  EXPECT_EQ(map.tokens[1].text, "Unbelievable");
  EXPECT_EQ(map.tokens[1].id, -1);
  EXPECT_EQ(map.tokens[1].begin, 0U);
  EXPECT_EQ(map.tokens[1].end, 12U);
  EXPECT_EQ(map.tokens[2].text, "cats");
  EXPECT_EQ(map.tokens[2].id, 4);
  EXPECT_EQ(map.from, 1U);
  EXPECT_EQ(map.places, (std::vector<size_t>{0, 1, 4, 5}));
  EXPECT_FLOAT_EQ(map.row(1)[1], 3 * 0.125F + 0.25F);
  EXPECT_FLOAT_EQ(map.row(1)[2], 0.125F);
  EXPECT_FLOAT_EQ(map.row(2)[1], 3 * 0.125F);
  for (size_t query = 0; query < 4; ++query) {
    float sum = 0;
    for (size_t key = 0; key < 4; ++key) sum += map.row(query)[key];
    EXPECT_FLOAT_EQ(sum, 1);
  }
}

TEST(AttentionMap, AWordWithoutAPlaceInTheTextIsStrungTogether) {
  auto tokens = tests::tokens_of({"a", "b"});
  tokens[1].continues_word = true;
  tokens[1].end = 1000;
  capture::Trace trace(tests::info_of(std::move(tokens), 1, 1));
  trace.add(capture::Stage::weights, 0, tensor::Tensor(tensor::Shape{1, 1, 2, 2}));
  EXPECT_EQ(in_words(trace).info().tokens.at(0).text, "ab");
}

TEST(AttentionMap, InWordsIsATraceLikeAnyOther) {
  const capture::Trace trace = pieces_trace();
  const capture::Trace words = in_words(trace);
  ASSERT_EQ(words.info().tokens.size(), 4U);
  const auto heads = summarize_heads(words);
  EXPECT_EQ(heads.at(0).links.front().query, 2U);
  EXPECT_EQ(heads.at(0).links.front().key, 1U);
  MapOptions options;
  options.words = true;
  for (size_t query = 0; query < 4; ++query) {
    EXPECT_EQ(attention_map(words, 0, 0, options).row(query), attention_map(trace, 0, 0, options).row(query));
  }
  const capture::Trace nothing(tests::info_of(tests::tokens_of({"a"}), 1, 1));
  EXPECT_EQ(error_text([&] { in_words(nothing); }),
            "[weights] expected a trace with weights; found none; record the stage weights");
}

TEST(AttentionMap, HidingSpecialTokensRescalesNothingAndSaysWhatIsMissing) {
  MapOptions options;
  options.hide_special = true;
  options.from = 4;
  const capture::Trace trace = pieces_trace();
  const AttentionMap map = attention_map(trace, 0, 0, options);
  ASSERT_EQ(map.tokens.size(), 4U);
  EXPECT_EQ(map.tokens[0].text, "un");
  EXPECT_EQ(map.from, 3U);
  EXPECT_EQ(map.places, (std::vector<size_t>{1, 2, 3, 4}));
  EXPECT_FLOAT_EQ(map.row(0)[0], 0.375F);
  EXPECT_FLOAT_EQ(map.row(0)[1], 0.125F);
  EXPECT_DOUBLE_EQ(map.hidden_mass, 0.25);
}

TEST(AttentionMap, FromMustBeAShownToken) {
  const capture::Trace trace = pieces_trace();
  MapOptions options;
  options.from = 6;
  EXPECT_EQ(error_text([&] { attention_map(trace, 0, 0, options); }),
            "usage: [from] expected a token below 6; found 6");
  options.from = 0;
  options.hide_special = true;
  EXPECT_EQ(
      error_text([&] { attention_map(trace, 0, 0, options); }),
      "usage: [from] expected a token that is shown; found \"[CLS]\"; show special tokens to see where they look");
  EXPECT_EQ(error_text([&] { draw_row(trace, 6, {}, {}, {}); }), "usage: [from] expected a token below 6; found 6");
}

TEST(Pooling, KeepsTheLargestWeightOfACell) {
  const auto pooled = [](std::vector<float> values, size_t n, size_t pool) {
    return pooled_by_maximum(
        capture::StoredWeights({tensor::DType::f32, {1, 1, n, n}, std::as_bytes(std::span(values))}), pool);
  };
  EXPECT_EQ(pooled({1, 2, 3, 4, 5, 6, 7, 8, 9}, 3, 2), (std::vector<float>{5, 6, 8, 9}));
  EXPECT_EQ(pooled({1, 2, 3, 4}, 2, 1), (std::vector<float>{1, 2, 3, 4}));
}

TEST(Layout, ShrinksCellsBeforeItPools) {
  Style style;
  style.colors = Colors::truecolor;
  const auto layout_of = [&](size_t n) {
    const auto trace = tests::cyclic_trace(std::vector<std::string>(n, "word"), 1, 1);
    return map_layout(attention_map(trace, 0, 0, {}), Labels(style));
  };
  EXPECT_EQ(layout_of(8).names, ColumnNames::horizontal);
  EXPECT_TRUE(layout_of(18).numbers);
  EXPECT_EQ(layout_of(18).names, ColumnNames::vertical);
  EXPECT_EQ(layout_of(30).cell, 2U);
  EXPECT_EQ(layout_of(30).pool, 1U);
  EXPECT_TRUE(layout_of(60).half_blocks);
  EXPECT_EQ(layout_of(60).pool, 1U);
  EXPECT_EQ(layout_of(512).pool, 8U);
  EXPECT_EQ(layout_of(512).bins, 64U);
  style.width = 120;
  EXPECT_TRUE(layout_of(40).numbers || layout_of(40).cell == 2);
  EXPECT_EQ(layout_of(40).pool, 1U);
}

}  // namespace
}  // namespace clearhead::views
