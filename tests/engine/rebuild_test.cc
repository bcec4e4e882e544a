// SPDX-License-Identifier: Apache-2.0
// Traces that keep what grows with the length and rebuild the rest, records that are written while the run goes on, and
// records that spill to a file: all the same to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "clearhead/capture/trace.h"
#include "clearhead/engine/memory_estimate.h"
#include "clearhead/engine/rebuilt.h"
#include "clearhead/engine/session.h"
#include "clearhead/engine/verify.h"
#include "clearhead/tensor/compare.h"
#include "tests/engine/random_model.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::engine {
namespace {

using capture::Stage;
using tests::error_text;

constexpr const char* kText = "one two three four five six seven eight nine ten eleven twelve";

const Session& toy() {
  static const Session session = Session::toy({.d_model = 24, .num_heads = 3});
  return session;
}

capture::Selection of_heads(std::vector<Stage> stages, std::vector<size_t> heads) {
  return {std::move(stages), std::nullopt, std::move(heads)};
}

const std::vector<Stage> kSquares = {Stage::raw_scores, Stage::scores, Stage::kernel_scores, Stage::weights};

TEST(Rebuild, ShowsWhatARunThatKeepsEverythingShows) {
  for (const std::vector<size_t>& heads : {std::vector<size_t>{0, 1, 2}, std::vector<size_t>{0, 2}}) {
    const capture::Trace kept = toy().run(kText, of_heads(kSquares, heads));
    const capture::Trace rebuilt = toy().run(kText, of_heads(kSquares, heads), {.rebuild = true});
    for (Stage stage : kSquares) {
      EXPECT_TRUE(kept.has(stage, 0));
      EXPECT_FALSE(rebuilt.has(stage, 0));
      ASSERT_TRUE(rebuilt.shows(stage, 0));
      EXPECT_TRUE(tensor::same_bits(rebuilt.source(stage, 0).all(), kept.tensor(stage, 0)))
          << capture::info(stage).name;
      EXPECT_TRUE(tensor::same_bits(kept.source(stage, 0).all(), kept.tensor(stage, 0)));
    }
  }
}

// Grouped heads, of which not all are kept: decoder_config has two query heads a kv head.
TEST(Rebuild, ReadsTheKvHeadsOfTheHeadsThatAreKept) {
  const model::Transformer model = tests::random_model(tests::decoder_config());
  const capture::Selection all = tests::everything();
  const capture::Trace kept = tests::record(model, 9, {all.stages, {{1}}, {{1, 2}}});
  for (const std::vector<size_t>& heads : {std::vector<size_t>{1, 2}, std::vector<size_t>{1}, std::vector<size_t>{2}}) {
    const capture::Selection selection{kSquares, {{1}}, heads};
    capture::Trace trace = tests::record(model, 9, rebuildable(model, selection));
    attach_rebuilt(model, selection.stages, trace);
    for (Stage stage : kSquares) {
      for (size_t i = 0; i < heads.size(); ++i) {
        std::vector<float> found(81), expected(81);
        trace.source(stage, 1).tile({0, i, 0, 9, 0, 9}, found);
        kept.source(stage, 1).tile({0, heads[i] - 1, 0, 9, 0, 9}, expected);
        EXPECT_EQ(found, expected) << capture::info(stage).name << " of head " << heads[i];
      }
    }
  }
}

TEST(Record, WritesTheFileThatATraceWouldWrite) {
  const tests::TemporaryFolder folder;
  for (const capture::Selection& selection :
       {capture::Selection{capture::parse_stages("all"), std::nullopt, std::nullopt},
        of_heads({Stage::query, Stage::weights, Stage::row_sum, Stage::embedding}, {0, 2})}) {
    const auto streamed = folder.path() / "streamed.safetensors", whole = folder.path() / "whole.safetensors";
    const Session::Recorded recorded = toy().record(toy().tokenize(kText), selection, streamed);
    const capture::Trace trace = toy().run(kText, selection);
    trace.write(whole);
    EXPECT_EQ(tests::read_bytes(streamed), tests::read_bytes(whole));
    EXPECT_EQ(recorded.bytes, trace.bytes());
    EXPECT_EQ(recorded.tokens, trace.info().tokens.size());
    EXPECT_FALSE(recorded.first_nan.has_value());
    const capture::Trace read = capture::Trace::read(streamed);
    EXPECT_TRUE(tensor::same_bits(read.source(Stage::weights, 0).all(), trace.tensor(Stage::weights, 0)));
  }
}

TEST(Record, ATraceThatRebuildsIsWrittenWithWhatItRebuilds) {
  const tests::TemporaryFolder folder;
  const capture::Selection selection{capture::parse_stages("all"), std::nullopt, std::nullopt};
  const auto rebuilt = folder.path() / "rebuilt.safetensors", whole = folder.path() / "whole.safetensors";
  toy().run(kText, selection, {.rebuild = true}).write(rebuilt);
  toy().run(kText, selection).write(whole);
  EXPECT_EQ(tests::read_bytes(rebuilt), tests::read_bytes(whole));
}

TEST(Spill, ARecordOverTheLimitIsMappedFromAFileWithoutAName) {
  const tests::TemporaryFolder folder;
  const capture::Selection selection{capture::parse_stages("all"), std::nullopt, std::nullopt};
  const TokenizedText text = toy().tokenize(kText);
  const RunBytes bytes = estimate_run(toy().transformer(), text.tokens.size(), selection);
  RunOptions options{.memory_limit = bytes.total() - 1};
  EXPECT_NE(error_text([&] { toy().run(text, selection, options); }).find("[memory]"), std::string::npos);
  options.spill = folder.path();
  const capture::Trace spilled = toy().run(text, selection, options), kept = toy().run(text, selection);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  for (const capture::StageInfo& stage : capture::stages()) {
    ASSERT_EQ(spilled.has(stage.stage, 0), kept.has(stage.stage, 0)) << stage.name;
    if (!kept.has(stage.stage, 0)) continue;
    EXPECT_TRUE(tensor::same_bits(spilled.tensor(stage.stage, 0), kept.tensor(stage.stage, 0))) << stage.name;
  }
  options.rebuild = true;
  options.memory_limit =
      estimate_run(toy().transformer(), text.tokens.size(), rebuildable(toy().transformer(), selection)).total() - 1;
  const capture::Trace both = toy().run(text, selection, options);
  EXPECT_TRUE(tensor::same_bits(both.source(Stage::weights, 0).all(), kept.tensor(Stage::weights, 0)));
  options.memory_limit = bytes.passing;
  EXPECT_NE(error_text([&] { toy().run(text, selection, options); }).find("[memory]"), std::string::npos);
  options = {.memory_limit = bytes.total() - 1, .spill = folder.path() / "nowhere"};
  EXPECT_NE(error_text([&] { toy().run(text, selection, options); }).find("nowhere"), std::string::npos);
}

TEST(Verify, ProvesWhatIsRebuiltAsWhatIsRecorded) {
  const capture::Selection selection{capture::parse_stages("all"), std::nullopt, std::nullopt};
  const capture::Trace kept = toy().run(kText, selection), rebuilt = toy().run(kText, selection, {.rebuild = true});
  for (const auto& [a, b] : {std::pair{verify(toy(), kept), verify(toy(), rebuilt)},
                             std::pair{verify_end_to_end(toy(), kept), verify_end_to_end(toy(), rebuilt)}}) {
    EXPECT_TRUE(a.ok && b.ok);
    ASSERT_EQ(a.stages.size(), b.stages.size());
    for (size_t i = 0; i < a.stages.size(); ++i) {
      EXPECT_EQ(a.stages[i].stage, b.stages[i].stage);
      EXPECT_EQ(a.stages[i].worst_share, b.stages[i].worst_share) << capture::info(a.stages[i].stage).name;
      EXPECT_EQ(a.stages[i].at, b.stages[i].at);
      EXPECT_FALSE(b.stages[i].skipped);
    }
  }
}

TEST(MemoryEstimate, OfARunThatRebuildsGrowsWithTheLength) {
  const capture::Selection weights{{Stage::weights}, std::nullopt, std::nullopt};
  const auto beyond_parameters = [&](size_t seq_len, bool rebuild) {
    return static_cast<double>(toy().memory_estimate(seq_len, weights, rebuild) - toy().transformer().resident_bytes());
  };
  EXPECT_DOUBLE_EQ(beyond_parameters(20000, true), 2 * beyond_parameters(10000, true));
  EXPECT_GT(beyond_parameters(20000, false), 3.9 * beyond_parameters(10000, false));
}

}  // namespace
}  // namespace clearhead::engine
