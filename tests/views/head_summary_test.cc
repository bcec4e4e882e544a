// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/head_summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "clearhead/base/parallel.h"
#include "clearhead/views/shown_weights.h"
#include "tests/support/error_text.h"
#include "tests/views/traces.h"

namespace clearhead::views {
namespace {

using tests::cat_trace;
using tests::error_text;
using tests::trace_of;

HeadSummary only_head(const capture::Trace& trace) { return summarize_heads(trace).at(0); }

// A 4-token matrix in which each row has weight at its diagonal plus offset, and the rest at the others alike.
std::vector<float> diagonal(int offset, float weight) {
  std::vector<float> values(16, 0);
  for (int query = 0; query < 4; ++query) {
    const bool has = query + offset >= 0 && query + offset < 4;
    for (int key = 0; key < 4; ++key) {
      float& value = values[static_cast<size_t>(query * 4 + key)];
      value = !has ? 0.25F : key == query + offset ? weight : (1 - weight) / 3;
    }
  }
  return values;
}

std::vector<float> columns(std::vector<float> row) {
  std::vector<float> values;
  for (int query = 0; query < 4; ++query) values.insert(values.end(), row.begin(), row.end());
  return values;
}

TEST(HeadSummary, TellsTheTextbookSentenceOfMinilm) {
  const auto heads = in_order_of_telling(summarize_heads(cat_trace()));
  ASSERT_EQ(heads.size(), 72U);
  const auto place_of = [&](size_t layer, size_t head) {
    return std::find_if(heads.begin(), heads.end(), [&](const auto& h) { return h.layer == layer && h.head == head; }) -
           heads.begin();
  };
  EXPECT_LT(place_of(5, 11), 3);
  EXPECT_LT(place_of(5, 3), 6);
  const HeadSummary& first = heads[static_cast<size_t>(place_of(5, 11))];
  EXPECT_EQ(first.kind, HeadKind::content);
  EXPECT_EQ(first.links.front().query, 3U);
  EXPECT_EQ(first.links.front().key, 2U);
  EXPECT_NEAR(first.links.front().weight, 0.891, 5e-4);
  const auto& links = heads[static_cast<size_t>(place_of(5, 3))].links;
  const auto sat_mat =
      std::find_if(links.begin(), links.end(), [](const Link& l) { return l.query == 3 && l.key == 6; });
  ASSERT_NE(sat_mat, links.end());
  EXPECT_NEAR(sat_mat->weight, 0.43, 5e-3);
}

TEST(HeadSummary, FindsWhatHeadsOfMinilmDo) {
  const auto heads = summarize_heads(cat_trace());
  EXPECT_EQ(heads[2].kind, HeadKind::previous);          // layer 0 head 2
  EXPECT_EQ(heads[12 + 8].kind, HeadKind::next);         // layer 1 head 8
  EXPECT_EQ(heads[2 * 12 + 9].kind, HeadKind::special);  // layer 2 head 9
  EXPECT_EQ(heads[5 * 12 + 6].kind, HeadKind::broad);    // layer 5 head 6
  EXPECT_NEAR(heads[2].previous.value(), 1.0, 2e-3);
  EXPECT_NEAR(heads[5 * 12 + 11].entropy.value(), 0.383 * std::log(8.0), 2e-3);
}

TEST(HeadSummary, KindsHoldInTheirOrder) {
  const std::vector<std::string> plain{"a", "b", "c", "d"}, marked{"[CLS]", "b", ",", "d"};
  EXPECT_EQ(only_head(trace_of(plain, {diagonal(-1, 0.6F)})).kind, HeadKind::previous);
  EXPECT_EQ(only_head(trace_of(plain, {diagonal(1, 0.6F)})).kind, HeadKind::next);
  EXPECT_EQ(only_head(trace_of(plain, {diagonal(0, 0.6F)})).kind, HeadKind::self);
  EXPECT_EQ(only_head(trace_of(marked, {columns({0.7F, 0.1F, 0.1F, 0.1F})})).kind, HeadKind::special);
  EXPECT_EQ(only_head(trace_of(marked, {columns({0.1F, 0.1F, 0.7F, 0.1F})})).kind, HeadKind::punctuation);
  EXPECT_EQ(only_head(trace_of(plain, {columns({0.25F, 0.25F, 0.25F, 0.25F})})).kind, HeadKind::broad);
  EXPECT_EQ(only_head(trace_of(plain, {columns({0.1F, 0.1F, 0.7F, 0.1F})})).kind, HeadKind::content);
}

TEST(HeadSummary, ThresholdsAreExceededNotReached) {
  const std::vector<std::string> marked{"[CLS]", "b", ",", "d"};
  EXPECT_EQ(only_head(trace_of(marked, {diagonal(0, 0.5F)})).self, 0.5);
  EXPECT_NE(only_head(trace_of(marked, {diagonal(0, 0.5F)})).kind, HeadKind::self);
  EXPECT_EQ(only_head(trace_of(marked, {diagonal(0, 0.5625F)})).kind, HeadKind::self);
}

TEST(HeadSummary, FiguresAreMeansOverRows) {
  const auto head = only_head(trace_of({"[CLS]", "b", ",", "d"}, {columns({0.5F, 0.25F, 0.25F, 0})}));
  EXPECT_DOUBLE_EQ(head.entropy.value(), 1.5 * std::log(2.0));
  EXPECT_DOUBLE_EQ(head.relative_entropy.value(), 1.5 * std::log(2.0) / std::log(3.0));  // nobody sees d
  EXPECT_DOUBLE_EQ(head.strongest.value(), 0.5);
  EXPECT_DOUBLE_EQ(head.previous.value(), (0.5 + 0.25 + 0.25) / 3);
  EXPECT_DOUBLE_EQ(head.next.value(), (0.25 + 0.25) / 2);
  EXPECT_DOUBLE_EQ(head.self.value(), (0.5 + 0.25 + 0.25) / 3);
  EXPECT_DOUBLE_EQ(head.first.value(), 0.5);
  EXPECT_DOUBLE_EQ(head.special.value(), 0.5);
  EXPECT_DOUBLE_EQ(head.punctuation.value(), 0.25);
  EXPECT_DOUBLE_EQ(head.mean_distance.value(), ((0.25 + 0.5) + (0.5 + 0.25) + (1 + 0.25) + (1.5 + 0.5 + 0.25)) / 4);
}

TEST(HeadSummary, FiguresWithoutMeaningAreAbsent) {
  const auto head = only_head(trace_of({"a"}, {{1}}));
  EXPECT_FALSE(head.previous || head.next || head.relative_entropy || head.special || head.punctuation);
  EXPECT_EQ(head.entropy, 0.0);
  EXPECT_EQ(head.self, 1.0);
  EXPECT_EQ(head.kind, HeadKind::self);
  EXPECT_TRUE(head.links.empty());
  EXPECT_EQ(head.telling, 0);
}

TEST(HeadSummary, ACausalHeadHasNoNextKey) {
  const auto head = only_head(trace_of({"a", "b", "c"}, {{1, 0, 0, 0.5F, 0.5F, 0, 0.25F, 0.25F, 0.5F}}));
  EXPECT_FALSE(head.next.has_value());
  EXPECT_DOUBLE_EQ(head.previous.value(), (0.5 + 0.25) / 2);
  EXPECT_DOUBLE_EQ(head.relative_entropy.value(), (1 + 1.5 * std::log(2.0) / std::log(3.0)) / 2);
}

TEST(HeadSummary, WhatOneHeadSeesIsVisibleToAllOfItsLayer) {
  const std::vector<float> even(4, 0.5F);
  const auto trace = trace_of({"a", "b"}, {{1, 0, 0, 1}, even});
  EXPECT_DOUBLE_EQ(summarize_head(trace, 0, 0).next.value(), 0);
}

TEST(HeadSummary, RowsThatSeeNothingAreLeftOut) {
  const auto head = only_head(trace_of({"a", "b"}, {{0, 0, 1, 0}}));
  EXPECT_DOUBLE_EQ(head.strongest.value(), 1);
  EXPECT_DOUBLE_EQ(head.mean_distance.value(), 1);
  const auto blind = only_head(trace_of({"a", "b"}, {{0, 0, 0, 0}}));
  EXPECT_FALSE(blind.entropy || blind.strongest || blind.previous || blind.self || blind.first || blind.mean_distance);
  EXPECT_EQ(blind.kind, HeadKind::content);
}

TEST(HeadSummary, LinksAreStrongestFirstAndNeverSpecialOrSelf) {
  const auto head = only_head(trace_of({"[CLS]", "b", "c", "d"}, {{0.1F, 0.9F, 0, 0,       //
                                                                   0.5F, 0.05F, 0.45F, 0,  //
                                                                   0, 0.4F, 0.5F, 0.1F,    //
                                                                   0, 0.4F, 0.3F, 0.3F}}));
  ASSERT_EQ(head.links.size(), 5U);
  EXPECT_EQ(head.links[0].query, 2U);  // 0.4 times all of the row; of equals, the lower query first
  EXPECT_EQ(head.links[0].key, 1U);
  EXPECT_EQ(head.links[1].query, 3U);
  EXPECT_EQ(head.links[3].query, 1U);  // 0.45 times half of the row
  EXPECT_FLOAT_EQ(head.links[3].weight, 0.45F);
  EXPECT_NEAR(head.telling, 0.4, 1e-7);
  EXPECT_EQ(summarize_heads(trace_of({"a", "b", "c"}, {std::vector<float>(9, 1 / 3.0F)}), 2)[0].links.size(), 2U);
}

TEST(HeadSummary, TheStrongestLinkOfARowIsRankedAlike) {
  const std::vector<uint8_t> resting{1, 0, 0, 0};
  const std::vector<float> row{0.5F, 0.05F, 0.45F, 0};
  const auto link = strongest_link(row, 1, resting);
  ASSERT_TRUE(link.has_value());
  EXPECT_EQ(link->link.key, 2U);
  EXPECT_NEAR(link->strength, 0.45 * 0.5, 1e-7);
  EXPECT_FALSE(strongest_link(row, 0, resting).has_value());
  EXPECT_FALSE(strongest_link(std::vector<float>(4, 0), 1, resting).has_value());
}

TEST(HeadSummary, HeadsOfADecoderRestOnTheFirstToken) {
  const std::string causal = R"({"causal": "offset"})", both_ways = R"({"causal": "none"})";
  const std::vector<std::string> plain{"a", "b", "c"}, marked{"[BOS]", "b", "c"};
  const std::vector<float> resting{1, 0, 0, 0.9F, 0.1F, 0, 0.9F, 0.05F, 0.05F},
      linking{1, 0, 0, 0.5F, 0.5F, 0, 0.25F, 0.5F, 0.25F};
  EXPECT_EQ(only_head(trace_of(plain, {resting}, causal)).kind, HeadKind::first);
  EXPECT_NE(only_head(trace_of(plain, {resting}, both_ways)).kind, HeadKind::first);
  EXPECT_NE(only_head(trace_of(plain, {resting})).kind, HeadKind::first);
  EXPECT_EQ(only_head(trace_of(marked, {resting}, causal)).kind, HeadKind::special);
  const auto links = only_head(trace_of(plain, {linking}, causal)).links;
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links[0].query, 2U);
  EXPECT_EQ(links[0].key, 1U);
  EXPECT_NEAR(only_head(trace_of(plain, {linking}, causal)).telling, 0.5 * 0.75, 1e-7);
  EXPECT_FALSE(only_head(trace_of(plain, {linking}, causal)).special);
}

TEST(HeadSummary, NoNumberUpsetsTheOrder) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const auto heads = in_order_of_telling(summarize_heads(
      trace_of({"a", "b", "c"}, {{nan, nan, nan, 1, 0, 0, infinity, infinity, 0}, {0, 0, 1, 0, 0, 1, 1, 0, 0}})));
  EXPECT_EQ(heads.size(), 2U);
  for (const auto& head : heads) EXPECT_TRUE(std::isfinite(head.telling));
}

TEST(HeadSummary, SameForAnyNumberOfThreads) {
  const auto trace = cat_trace();
  const size_t before = base::num_threads();
  base::set_num_threads(1);
  const auto one = summarize_heads(trace);
  base::set_num_threads(3);
  const auto three = summarize_heads(trace);
  base::set_num_threads(before);
  ASSERT_EQ(one.size(), three.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].entropy, three[i].entropy);
    EXPECT_EQ(one[i].telling, three[i].telling);
  }
}

TEST(HeadSummary, OrderIsContentByTellingThenKinds) {
  const auto heads = in_order_of_telling(summarize_heads(cat_trace()));
  for (size_t i = 1; i < heads.size(); ++i) {
    const bool content = heads[i].kind == HeadKind::content, before = heads[i - 1].kind == HeadKind::content;
    EXPECT_TRUE(before || !content);
    EXPECT_TRUE(!content || heads[i - 1].telling >= heads[i].telling);
    EXPECT_TRUE(before || heads[i - 1].kind <= heads[i].kind);
  }
}

TEST(HeadSummary, RulesNameEveryKindAndThreshold) {
  for (size_t kind = 0; kind < kHeadKinds; ++kind)
    EXPECT_NE(kind_rules().find(name_of(static_cast<HeadKind>(kind))), std::string_view::npos);
  for (const char* threshold : {"0.5", "0.6", "0.8"}) EXPECT_NE(kind_rules().find(threshold), std::string_view::npos);
}

TEST(HeadSummary, MissingOrMisshapenWeightsAreNamed) {
  EXPECT_EQ(error_text([] { summarize_heads(capture::Trace(tests::info_of(tests::tokens_of({"a"}), 1, 1))); }),
            "[weights] expected a trace with weights; found none; record the stage weights");
  const capture::Trace one = trace_of({"a"}, {{1}});
  EXPECT_EQ(error_text([&] { head_weights(one, 0, 7); }),
            "[weights] expected recorded weights of layer 0 head 7; found none; record the stage weights of this layer "
            "and head");
  EXPECT_EQ(error_text([] {
              capture::Trace trace(tests::info_of(tests::tokens_of({"a", "b"}), 1, 1));
              trace.add(capture::Stage::weights, 0, tensor::Tensor(tensor::Shape{1, 1, 2, 3}));
              summarize_heads(trace);
            }),
            "[weights] expected weights of shape [1, 1, 2, 2] in layer 0; found [1, 1, 2, 3]");
}

}  // namespace
}  // namespace clearhead::views
