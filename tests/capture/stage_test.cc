// SPDX-License-Identifier: Apache-2.0
#include "clearhead/capture/stage.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace clearhead::capture {
namespace {

TEST(Stage, RowsStandInTheOrderOfTheEnumAndAreFoundByName) {
  ASSERT_EQ(stages().size(), static_cast<size_t>(Stage::logits) + 1);
  for (size_t i = 0; i < stages().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(stages()[i].stage), i);
    EXPECT_EQ(&info(stages()[i].stage), &stages()[i]);
    EXPECT_EQ(stage_named(stages()[i].name), stages()[i].stage);
  }
  EXPECT_EQ(info(Stage::kernel_scores).name, "kernel_scores");
  EXPECT_EQ(info(Stage::feed_forward_hidden).name, "feed_forward_hidden");
  EXPECT_FALSE(stage_named("weight"));
  EXPECT_FALSE(stage_named(""));
}

TEST(Stage, EveryRowSaysEverything) {
  std::set<std::string_view> names;
  for (const StageInfo& row : stages()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.formula.empty()) << row.name;
    EXPECT_FALSE(row.source.empty()) << row.name;
    EXPECT_TRUE(row.sentence.ends_with('.')) << row.name;
    for (std::string_view text : {row.formula, row.sentence, row.source, row.shape}) {
      EXPECT_EQ(text.find('|'), std::string_view::npos) << "would end a cell of the Markdown table: " << text;
    }
  }
}

TEST(Stage, ShapesUseTheWordsOfTheGlossary) {
  const std::set<std::string_view> words = {"batch", "seq",      "heads",     "kv_heads", "query", "key",
                                            "d_ff",  "head_dim", "value_dim", "d_model",  "vocab"};
  for (const StageInfo& row : stages()) {
    const auto found = axes(row.stage);
    std::string shape;
    for (std::string_view word : found) {
      EXPECT_TRUE(words.contains(word)) << word;
      shape += (shape.empty() ? "[" : ", ") + std::string(word);
    }
    EXPECT_EQ(shape + "]", row.shape);
  }
}

TEST(Stage, HeadAxisIsWhereTheShapeSaysHeads) {
  for (const StageInfo& row : stages()) {
    const auto words = axes(row.stage);
    std::optional<size_t> expected;
    for (size_t axis = 0; axis < words.size(); ++axis) {
      if (words[axis] == "heads" || words[axis] == "kv_heads") expected = axis;
    }
    EXPECT_EQ(row.head_axis, expected) << row.name;
  }
}

}  // namespace
}  // namespace clearhead::capture
