// SPDX-License-Identifier: Apache-2.0
#include "clearhead/capture/selection.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

#include "tests/support/error_text.h"

namespace clearhead::capture {
namespace {

using tests::error_text;
using Indices = std::vector<size_t>;

TEST(Selection, IndexSetsAreSortedWithoutRepeats) {
  EXPECT_EQ(parse_index_set("3", "layers", 6), (Indices{3}));
  EXPECT_EQ(parse_index_set("0-3,5", "layers", 6), (Indices{0, 1, 2, 3, 5}));
  EXPECT_EQ(parse_index_set("5,2-4,3,0-0", "layers", 6), (Indices{0, 2, 3, 4, 5}));
}

TEST(Selection, EveryOtherTextIsRefusedByName) {
  const auto complaint = [](std::string_view text) { return error_text([&] { parse_index_set(text, "layers", 6); }); };
  for (const char* text : {"", ",", "1,", ",1", "6", "0-6", "3-2", "-", "1-", "-1", "1-2-3", "a", "1a", " 1", "+1",
                           "0x1", "1.0", "99999999999999999999999", "0-18446744073709551615"}) {
    EXPECT_TRUE(complaint(text).starts_with("usage: [layers] expected numbers from 0 to 5, like \"0-3,5\"; found \""))
        << text << ": " << complaint(text);
  }
  EXPECT_EQ(complaint("0,7"), "usage: [layers] expected numbers from 0 to 5, like \"0-3,5\"; found \"7\"");
  EXPECT_EQ(error_text([] { parse_index_set("0", "heads", 0); }),
            "usage: [heads] expected nothing (there are none); found \"0\"");
  EXPECT_EQ(error_text([] { parse_index_set("1", "heads", 1); }),
            "usage: [heads] expected 0 (there is only one), like \"0-3,5\"; found \"1\"");
}

TEST(Selection, AnyIndexSetIsReadBack) {
  EXPECT_TRUE(rc::check("parse_index_set(written) = set", [] {
    constexpr size_t kLimit = 100;
    const auto drawn = *rc::gen::nonEmpty(rc::gen::container<Indices>(rc::gen::inRange<size_t>(0, kLimit)));
    const std::set<size_t> set(drawn.begin(), drawn.end());
    std::string text;
    for (auto at = set.begin(); at != set.end();) {
      size_t last = *at;
      const size_t first = *at++;
      if (*rc::gen::arbitrary<bool>()) {
        while (at != set.end() && *at == last + 1) last = *at++;
      }
      text += fmt::format("{}{}", text.empty() ? "" : ",", first);
      if (last > first || *rc::gen::arbitrary<bool>()) text += fmt::format("-{}", last);
    }
    RC_ASSERT(parse_index_set(text, "layers", kLimit) == Indices(set.begin(), set.end()));
  }));
}

TEST(Selection, StagesStandInTheOrderOfTheTable) {
  EXPECT_EQ(parse_stages("weights,query,weights"), (std::vector{Stage::query, Stage::weights}));
  const std::vector<Stage> all = parse_stages("all");
  ASSERT_EQ(all.size(), stages().size());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], stages()[i].stage);
}

TEST(Selection, AnUnknownStageIsRefusedWithAllThatExist) {
  const std::string complaint = error_text([] { parse_stages("query,wieghts"); });
  EXPECT_TRUE(complaint.starts_with("usage: [stages] expected all, or names of token_embedding, ")) << complaint;
  EXPECT_TRUE(complaint.ends_with(", logits, separated by commas; found \"wieghts\"")) << complaint;
  EXPECT_TRUE(error_text([] { parse_stages(""); }).ends_with("; found \"\""));
  EXPECT_TRUE(error_text([] { parse_stages("query,"); }).ends_with("; found \"\""));
  EXPECT_TRUE(error_text([] { parse_stages("all,query"); }).ends_with("; found \"all\""));
}

TEST(Selection, LayersRestrictOnlyWhatStandsInLayers) {
  Selection selection{{Stage::embedding, Stage::weights, Stage::logits}, Indices{1, 3}, std::nullopt};
  EXPECT_TRUE(selection.includes(Stage::weights, 1));
  EXPECT_FALSE(selection.includes(Stage::weights, 0));
  EXPECT_FALSE(selection.includes(Stage::query, 1));
  EXPECT_TRUE(selection.includes(Stage::embedding, 0));
  EXPECT_TRUE(selection.includes(Stage::logits, 0));
  selection.layers.reset();
  EXPECT_TRUE(selection.includes(Stage::weights, 0));
}

}  // namespace
}  // namespace clearhead::capture
