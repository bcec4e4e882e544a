// SPDX-License-Identifier: Apache-2.0
// Which rows of the vocabulary may be written, by every kind of decoder, and what is said of damaged ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "clearhead/engine/generate.h"
#include "clearhead/tensor/compare.h"
#include "tests/engine/small_writer.h"
#include "tests/support/error_text.h"

namespace clearhead::engine {
namespace {

using capture::Stage;
using tests::error_text;
using tests::kPrompt;
using tests::small_writer;
using tests::wild;
using tests::writer;

// An embedding with more rows than the tokenizer has pieces is normal: what stands for nothing is never written.
TEST(Generate, RowsWithoutAPieceAreNeverWritten) {
  constexpr size_t kPieces = 30;
  const Session few = small_writer({.pieces = kPieces});
  EXPECT_EQ(few.num_pieces(), kPieces);
  const std::string prompt = "thecat";
  const auto writes = [&](const GenerateOptions& options) {
    const Generated found = generate(few, prompt, options);
    EXPECT_EQ(found.ids.size(), options.max_tokens);
    EXPECT_TRUE(std::ranges::all_of(found.ids, [](int64_t id) { return id < int64_t{kPieces}; }));
    EXPECT_EQ(whole_text(few, few.tokenize(prompt), found).tokens.size(), found.prompt_ids.size() + found.ids.size());
    return found.ids;
  };
  EXPECT_EQ(writes({.max_tokens = 20, .looks = 2}), writes({.max_tokens = 20}));
  for (uint64_t seed = 0; seed < 10; ++seed) writes(wild(seed));
  GenerateOptions drawn = wild(3);
  drawn.sampling.top_k = 40;
  drawn.sampling.top_p = 0.9;
  drawn.sampling.min_p = 0.01;
  drawn.sampling.repetition_penalty = 1.3;
  writes(drawn);

  // Without the bound such rows would have been chosen, and a trace shows their logits as they are.
  const auto beyond = [](const Generated& found) {
    return std::ranges::any_of(found.ids, [](int64_t id) { return id >= int64_t{kPieces}; });
  };
  EXPECT_TRUE(beyond(generate(writer(), prompt, {.max_tokens = 20})));
  const capture::Selection logits = {.stages = {Stage::logits}, .layers = {}, .heads = {}};
  EXPECT_TRUE(tensor::same_bits(few.run(prompt, logits).tensor(Stage::logits, 0),
                                writer().run(prompt, logits).tensor(Stage::logits, 0)));
}

TEST(Generate, ATokenThatEndsATextNeedsNoPiece) {
  const std::vector<int64_t> ids = generate(writer(), "thecat", {.max_tokens = 20}).ids;
  const auto beyond = std::ranges::find_if(ids, [](int64_t id) { return id >= 30; });
  ASSERT_NE(beyond, ids.end());
  const Generated found =
      generate(small_writer({.end = std::to_string(*beyond), .pieces = 30}), "thecat", {.max_tokens = 20});
  EXPECT_EQ(found.ids, std::vector<int64_t>(ids.begin(), beyond));
  EXPECT_EQ(found.stopped_by, "end");
}

TEST(Generate, EveryKindOfDecoderWrites) {
  for (const char* name : {"mistral", "qwen2", "qwen3", "gemma2", "gemma3", "gpt2", "gpt_neox"}) {
    SCOPED_TRACE(name);
    const Session session = small_writer({.model = name});
    const Generated found = generate(session, kPrompt, {.max_tokens = 6, .looks = 1});
    ASSERT_EQ(found.ids.size(), 6U);
    std::vector<int64_t> all = found.prompt_ids;
    for (const int64_t id : found.ids) {
      const tensor::Tensor hidden = session.transformer().run({.ids = all, .type_ids = {}});
      const tensor::Tensor logits = session.transformer().logits(hidden.as<float>().last(session.config().d_model));
      EXPECT_EQ(std::ranges::max_element(logits.as<float>()) - logits.as<float>().begin(), id);
      all.push_back(id);
    }
  }
}

TEST(Generate, LogitsThatAreNotFiniteAreTold) {
  EXPECT_FALSE(generate(writer(), kPrompt, {.max_tokens = 3}).non_finite);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(generate(small_writer({.damage = infinity}), kPrompt, {.max_tokens = 3}).non_finite, 0U);
  EXPECT_NE(error_text([] {
              generate(small_writer({.damage = std::numeric_limits<float>::quiet_NaN()}), kPrompt);
            }).find("logits that are numbers"),
            std::string::npos);
}

TEST(Generate, EndsOfAGenerationConfigCountInsteadOfThoseOfTheConfig) {
  const std::vector<int64_t> ids = generate(writer(), kPrompt, {.max_tokens = 12}).ids;
  const Session session = small_writer(
      {.end = std::to_string(ids[0]), .generation = "{\"eos_token_id\": [0, " + std::to_string(ids[4]) + "]}"});
  EXPECT_EQ(session.end_ids(), (std::vector<int64_t>{0, ids[4]}));
  EXPECT_TRUE(session.warnings().empty());
  EXPECT_EQ(small_writer({.end = "7", .generation = "{}"}).end_ids(), (std::vector<int64_t>{7}));
  EXPECT_EQ(small_writer({.end = "7", .generation = R"({"eos_token_id": null})"}).end_ids(), (std::vector<int64_t>{7}));
  const Session damaged = small_writer({.end = "7", .generation = "{"});
  EXPECT_EQ(damaged.end_ids(), (std::vector<int64_t>{7}));
  ASSERT_EQ(damaged.warnings().size(), 1U);
  EXPECT_NE(damaged.warnings()[0].find("text that is not JSON; the file is not used"), std::string::npos);
}

}  // namespace
}  // namespace clearhead::engine
