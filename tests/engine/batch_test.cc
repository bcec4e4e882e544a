// SPDX-License-Identifier: Apache-2.0
// Many texts at once: in the order of the texts, each with the bits that it has alone.
#include "clearhead/engine/batch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/base/parallel.h"
#include "clearhead/engine/memory_estimate.h"
#include "clearhead/tensor/compare.h"
#include "tests/support/error_text.h"

namespace clearhead::engine {
namespace {

using capture::Stage;
using tests::error_text;

const Session& toy() {
  static const Session session = Session::toy({.d_model = 24, .num_heads = 3});
  return session;
}

// count texts of 1 to 40 words, lengths all mixed up.
std::vector<std::string> texts_of(size_t count) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    std::string text;
    for (size_t word = 0; word < 1 + i * 17 % 40; ++word) text += fmt::format("w{} ", (i + word) % 7);
    texts.push_back(text);
  }
  return texts;
}

capture::Selection weights_of_two_heads() { return {{Stage::weights, Stage::row_sum}, std::nullopt, {{0, 2}}}; }

std::string bytes_of(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// Everything that is seen of a text, as bytes.
std::string everything(const capture::Trace& trace, std::span<const float> hidden) {
  return trace.info().text + bytes_of(hidden) + bytes_of(trace.tensor(Stage::row_sum, 0).as<float>()) +
         bytes_of(trace.source(Stage::weights, 0).all().as<float>());
}

TEST(Batch, GivesTheBitsOfEachTextAloneInTheOrderOfTheTexts) {
  const std::vector<std::string> texts = texts_of(101);
  const size_t threads_before = base::num_threads();
  for (size_t budget : {1, 50, 4096}) {
    base::set_num_threads(budget == 50 ? 3 : 2);
    std::vector<size_t> done;
    size_t calls = 0;
    Batch batch(toy(), weights_of_two_heads(), {.token_budget = budget, .progress = [&](size_t ready, size_t all) {
                                                  EXPECT_EQ(all, texts.size());
                                                  EXPECT_GT(ready, calls);
                                                  calls = ready;
                                                }});
    batch.run(
        texts, [](const BatchItem& item) { return everything(item.trace, item.hidden); },
        [&](size_t index, const std::string& made) {
          const capture::Trace alone = toy().run(texts[index], weights_of_two_heads(), {.rebuild = true});
          const tensor::Tensor hidden = toy().encode(texts[index]);
          EXPECT_EQ(made, everything(alone, hidden.as<float>())) << "text " << index << ", budget " << budget;
          done.push_back(index);
        });
    EXPECT_EQ(calls, texts.size());
    EXPECT_EQ(done.size(), texts.size());
    EXPECT_TRUE(std::ranges::is_sorted(done));
  }
  base::set_num_threads(threads_before);
}

TEST(Batch, ATextThatCannotBeReadIsMetBeforeAnythingRuns) {
  const std::vector<std::string> texts = {"a", "b", " ", "c"};
  size_t made = 0;
  Batch batch(toy(), weights_of_two_heads());
  EXPECT_EQ(error_text([&] {
              batch.run(
                  texts, [&](const BatchItem&) { return std::string(++made, 'x'); }, [](size_t, const std::string&) {});
            }),
            "usage: text 3 of 4: [text] expected a text with at least one token; found none");
  EXPECT_EQ(made, 0U);
}

TEST(Batch, AnErrorOfMakeSaysWhichTextItIsAbout) {
  Batch batch(toy(), weights_of_two_heads());
  EXPECT_EQ(error_text([&] {
              batch.run(
                  std::vector<std::string>{"a", "b"},
                  [](const BatchItem& item) -> std::string {
                    if (item.index == 1) base::fail("test", "a", "b");
                    return "";
                  },
                  [](size_t, const std::string&) {});
            }),
            "text 2 of 2: [test] expected a; found b");
}

TEST(Batch, ErrorsCallATextWhatItIsCalled) {
  Batch batch(toy(), weights_of_two_heads(),
              {.name_of = [](size_t index) { return fmt::format("line {}", 10 * index + 7); }});
  const auto nothing = [](size_t, const std::string&) {};
  const auto fail = [](const BatchItem&) -> std::string { base::fail("test", "a", "b"); };
  EXPECT_EQ(error_text([&] { batch.run(std::vector<std::string>{"a"}, fail, nothing); }),
            "line 7: [test] expected a; found b");
  EXPECT_EQ(error_text([&] {
              batch.run(std::vector<std::string>{"a", " "}, fail, nothing);
            }),
            "usage: line 17: [text] expected a text with at least one token; found none");
}

TEST(Batch, ARunAfterOneThatFailedCountsItsOwnTexts) {
  std::vector<size_t> done;
  Batch batch(toy(), weights_of_two_heads(),
              {.token_budget = 1, .progress = [&](size_t count, size_t) { done.push_back(count); }});
  const std::vector<std::string> texts = {"a a a", "b b", "c"};
  const auto nothing = [](size_t, const std::string&) {};
  const auto fail_at = [](size_t index) {
    return [index](const BatchItem& item) -> std::string {
      if (item.index == index) base::fail("test", "a", "b");
      return "";
    };
  };
  EXPECT_EQ(error_text([&] { batch.run(texts, fail_at(2), nothing); }), "text 3 of 3: [test] expected a; found b");
  EXPECT_EQ(done, (std::vector<size_t>{1, 2}));
  done.clear();
  batch.run(texts, fail_at(3), nothing);
  EXPECT_EQ(done, (std::vector<size_t>{1, 2, 3}));
}

TEST(Batch, ATextOverTheMemoryLimitIsRefusedWithTheEstimateBeforeAnythingRuns) {
  const std::vector<std::string> texts = {"a", "a b c d e", "b"};
  const size_t short_run = estimate_run(toy().transformer(), toy().tokenize("a").tokens.size(), {}).total();
  size_t made = 0;
  Batch batch(toy(), capture::Selection{}, {.memory_limit = short_run});
  const std::string text = error_text([&] {
    batch.run(
        texts, [&](const BatchItem&) { return std::string(++made, 'x'); }, [](size_t, const std::string&) {});
  });
  const std::string begin =
      fmt::format("usage: text 2 of 3: [memory] expected a run that keeps at most {} bytes; found ", short_run);
  EXPECT_TRUE(text.starts_with(begin)) << text;
  EXPECT_EQ(made, 0U);
}

TEST(Batch, TextsThatTogetherPassTheMemoryLimitRunInSmallerBatches) {
  const std::vector<std::string> texts = texts_of(40);
  size_t longest = 0;
  for (const std::string& text : texts) longest = std::max(longest, toy().tokenize(text).tokens.size());
  const size_t limit = estimate_run(toy().transformer(), longest, {}).total();
  size_t batches = 0;
  std::vector<size_t> done;
  Batch batch(toy(), capture::Selection{}, {.memory_limit = limit, .progress = [&](size_t, size_t) { ++batches; }});
  batch.run(
      texts, [](const BatchItem& item) { return bytes_of(item.hidden); },
      [&](size_t index, const std::string& made) {
        const tensor::Tensor hidden = toy().encode(texts[index]);
        EXPECT_EQ(made, bytes_of(hidden.as<float>())) << "text " << index;
        done.push_back(index);
      });
  EXPECT_EQ(done.size(), texts.size());
  EXPECT_GT(batches, 1U);
}

}  // namespace
}  // namespace clearhead::engine
