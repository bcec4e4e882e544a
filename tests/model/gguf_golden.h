// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "clearhead/format/checkpoint.h"
#include "clearhead/format/safetensors.h"
#include "clearhead/model/families/family.h"
#include "tests/support/stage_collector.h"

// A decoder from its GGUF against transformers' float run of the same file, by the goldens of
// golden/make_gguf_golden.py.
namespace clearhead::model::decoder {

constexpr size_t kLengths = 3, kPrompts = 8;
constexpr double kWeightTolerance = 1e-3, kLogitTolerance = 2e-3;

class GgufGolden {
 public:
  // step: of the tokens of the vocabulary whose logits the golden file has.
  GgufGolden(const std::filesystem::path& model, const std::filesystem::path& golden, size_t step)
      : model_(load_model(std::make_shared<const format::Checkpoint>(format::Checkpoint::open(model)))),
        file_(format::SafetensorsFile::open(golden)),
        step_(step) {}

  // Logits of the last token and weights of all layers of the texts of 6, 41 and 700 tokens.
  void expect_lengths() const {
    double logits = 0, weights = 0;
    for (size_t i = 0; i < kLengths; ++i) {
      const std::string name = fmt::format("length.{}", i);
      const std::vector<int64_t> ids = ids_of(name + ".ids");
      tests::StageCollector collector({capture::Stage::weights});
      const tensor::Tensor hidden = model_.transformer.run({ids, {}}, &collector);
      logits = std::max(logits, logit_drift(hidden, name + ".logits"));
      weights = std::max(weights, weight_drift(collector, ids.size(), name));
      EXPECT_LE(logits, kLogitTolerance) << ids.size() << " tokens";
      EXPECT_LE(weights, kWeightTolerance) << ids.size() << " tokens";
    }
    testing::Test::RecordProperty("logits", fmt::format("{:.2e}", logits));
    testing::Test::RecordProperty("weights", fmt::format("{:.2e}", weights));
  }

  // Logits behind each prompt, and the tokens that follow it.
  void expect_prompts() const {
    double worst = 0;
    for (size_t i = 0; i < kPrompts; ++i) {
      const std::string name = fmt::format("prompt.{}", i);
      const std::vector<int64_t> ids = ids_of(name + ".ids");
      worst = std::max(worst, logit_drift(model_.transformer.run({ids, {}}), name + ".logits"));
      EXPECT_LE(worst, kLogitTolerance) << "prompt " << i;
      const std::vector<int64_t> expected = ids_of(name + ".greedy"), found = continued(ids, expected.size());
      const auto parted = std::ranges::mismatch(found, expected).in1 - found.begin();
      EXPECT_EQ(found, expected) << "prompt " << i << " parts at token " << parted << ", whose logit is the largest by "
                                 << numbers(name + ".margin")[static_cast<size_t>(parted) % expected.size()];
    }
    testing::Test::RecordProperty("logits", fmt::format("{:.2e}", worst));
  }

  // Where one word of each of the two sentences of docs/two_sentences.md looks, in every head; golden: what
  // golden/make_sentence_golden.py made.
  void expect_sentences(const std::filesystem::path& golden) const {
    const auto file = format::SafetensorsFile::open(golden);
    double worst = 0;
    for (const char* name : {"0", "1"}) {
      const std::vector<int64_t> ids = integers(file, fmt::format("{}.ids", name));
      const auto query = static_cast<size_t>(integers(file, fmt::format("{}.query", name))[0]);
      const tensor::Tensor truth = tensor::clone(file.view(fmt::format("{}.row", name)));  // [layers, heads, seq]
      const size_t heads = truth.shape()[1], seq = ids.size();
      tests::StageCollector collector({capture::Stage::weights});
      model_.transformer.run({ids, {}}, &collector);
      for (size_t i = 0; i < truth.elements(); ++i) {
        const size_t layer = i / seq / heads, head = i / seq % heads, key = i % seq;
        const float seen = collector.get(capture::Stage::weights, layer).as<float>()[(head * seq + query) * seq + key];
        worst = std::max(worst, std::abs(static_cast<double>(seen) - truth.as<float>()[i]));
      }
    }
    testing::Test::RecordProperty("sentences", fmt::format("{:.2e}", worst));
    EXPECT_LE(worst, kWeightTolerance);
  }

 private:
  static std::vector<int64_t> integers(const format::SafetensorsFile& file, const std::string& name) {
    const tensor::Tensor values = tensor::clone(file.view(name));
    return {values.as<int64_t>().begin(), values.as<int64_t>().end()};
  }

  std::vector<int64_t> ids_of(const std::string& name) const { return integers(file_, name); }

  std::vector<float> numbers(const std::string& name) const {
    const tensor::Tensor values = tensor::clone(file_.view(name));
    return {values.as<float>().begin(), values.as<float>().end()};
  }

  tensor::Tensor logits_behind(const tensor::Tensor& hidden) const {
    return model_.transformer.logits(hidden.as<float>().last(model_.transformer.config().d_model));
  }

  double logit_drift(const tensor::Tensor& hidden, const std::string& name) const {
    const tensor::Tensor logits = logits_behind(hidden);
    const std::vector<float> truth = numbers(name);
    EXPECT_EQ(truth.size(), (logits.elements() + step_ - 1) / step_);
    double worst = 0;
    for (size_t i = 0; i < truth.size(); ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(logits.as<float>()[i * step_]) - truth[i]));
    }
    return worst;
  }

  double weight_drift(const tests::StageCollector& collector, size_t seq, const std::string& name) const {
    const tensor::Tensor places = tensor::clone(file_.view(name + ".places"));  // [2048, 4]
    const std::vector<float> truth = numbers(name + ".weights");
    EXPECT_EQ(places.elements(), 4 * truth.size());
    double worst = 0;
    for (size_t i = 0; i < truth.size(); ++i) {
      const auto at = places.as<int32_t>().subspan(4 * i, 4);
      const size_t head = static_cast<size_t>(at[1]), query = static_cast<size_t>(at[2]);
      const auto& layer = collector.get(capture::Stage::weights, static_cast<size_t>(at[0]));
      const float seen = layer.as<float>()[(head * seq + query) * seq + static_cast<size_t>(at[3])];
      worst = std::max(worst, std::abs(static_cast<double>(seen) - truth[i]));
    }
    return worst;
  }

  // The likeliest token that does not end the text, again and again.
  std::vector<int64_t> continued(const std::vector<int64_t>& ids, size_t count) const {
    KeyValueCache cache(model_.transformer.config());
    tensor::Tensor hidden = model_.transformer.run({.ids = ids, .type_ids = {}, .cache = &cache});
    std::vector<int64_t> found;
    while (found.size() < count) {
      tensor::Tensor logits = logits_behind(hidden);
      for (const int64_t id : model_.end_ids) logits.as<float>()[static_cast<size_t>(id)] = -1e30f;
      found.push_back(std::ranges::max_element(logits.as<float>()) - logits.as<float>().begin());
      hidden = model_.transformer.run({.ids = std::span(&found.back(), 1), .type_ids = {}, .cache = &cache});
    }
    return found;
  }

  LoadedModel model_;
  format::SafetensorsFile file_;
  size_t step_;
};

}  // namespace clearhead::model::decoder
