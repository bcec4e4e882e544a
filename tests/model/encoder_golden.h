// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "clearhead/format/safetensors.h"
#include "clearhead/model/transformer.h"
#include "clearhead/tensor/compare.h"
#include "tests/support/stage_collector.h"

// Weights and hidden states of an encoder against the goldens of golden/make_encoder_golden.py.
namespace clearhead::model::encoder {

inline format::SafetensorsFile golden(const std::string& name) {
  return format::SafetensorsFile::open(std::filesystem::path(CLEARHEAD_TEST_DATA) / (name + ".safetensors"));
}

inline std::vector<int64_t> ids_of(const format::SafetensorsFile& file) {
  const tensor::Tensor ids = tensor::clone(file.view("ids"));
  const auto values = ids.as<int64_t>();
  return {values.begin(), values.end()};
}

// What one text gives: weights of every head, and the last hidden state.
struct Seen {
  Seen(const Transformer& model, std::span<const int64_t> ids)
      : seq(ids.size()),
        layers(model.config().num_layers),
        heads(model.config().attention.num_heads),
        width(model.config().d_model),
        collector({capture::Stage::weights}),
        hidden(model.run({ids, {}}, &collector)) {}

  float weight(size_t layer, size_t head, size_t query, size_t key) const {
    return collector.get(capture::Stage::weights, layer).as<float>()[(head * seq + query) * seq + key];
  }

  size_t seq, layers, heads, width;
  clearhead::tests::StageCollector collector;
  tensor::Tensor hidden;  // [1, seq, d_model]
};

// Largest differences from the golden file, all values or the sampled places.
struct Drift {
  double weights = 0, hidden = 0;
};

inline Drift drift(const Seen& seen, const format::SafetensorsFile& file) {
  Drift found;
  if (file.contains("weights")) {
    const tensor::Tensor weights = tensor::clone(file.view("weights")), hidden = tensor::clone(file.view("hidden"));
    EXPECT_EQ(weights.shape(), (tensor::Shape{seen.layers, seen.heads, seen.seq, seen.seq}));
    EXPECT_EQ(hidden.shape(), (tensor::Shape{seen.seq, seen.width}));
    const size_t per_head = seen.seq * seen.seq;
    for (size_t i = 0; i < weights.elements(); ++i) {
      const size_t head = i / per_head, place = i % per_head;
      const double ours = seen.weight(head / seen.heads, head % seen.heads, place / seen.seq, place % seen.seq);
      found.weights = std::max(found.weights, std::abs(ours - static_cast<double>(weights.as<float>()[i])));
    }
    found.hidden = tensor::compare(tensor::clone(seen.hidden).reshaped({seen.seq, seen.width}), hidden).max_abs;
    return found;
  }
  const tensor::Tensor places = tensor::clone(file.view("weight_places")),
                       values = tensor::clone(file.view("weight_values")),
                       hidden_places = tensor::clone(file.view("hidden_places")),
                       hidden_values = tensor::clone(file.view("hidden_values"));
  EXPECT_EQ(places.shape(), (tensor::Shape{4096, 4}));
  EXPECT_EQ(hidden_places.shape(), (tensor::Shape{4096, 2}));
  for (size_t i = 0; i < values.elements(); ++i) {
    const auto place = places.as<int32_t>().subspan(i * 4, 4);
    const double ours = seen.weight(static_cast<size_t>(place[0]), static_cast<size_t>(place[1]),
                                    static_cast<size_t>(place[2]), static_cast<size_t>(place[3]));
    found.weights = std::max(found.weights, std::abs(ours - static_cast<double>(values.as<float>()[i])));
  }
  for (size_t i = 0; i < hidden_values.elements(); ++i) {
    const auto place = hidden_places.as<int32_t>().subspan(i * 2, 2);
    const double ours =
        seen.hidden.as<float>()[static_cast<size_t>(place[0]) * seen.width + static_cast<size_t>(place[1])];
    found.hidden = std::max(found.hidden, std::abs(ours - static_cast<double>(hidden_values.as<float>()[i])));
  }
  return found;
}

struct GoldenText {
  const char* name;
  size_t tokens;
};

inline std::string name_of(const testing::TestParamInfo<GoldenText>& text) { return text.param.name; }

// All heads and the last hidden state are those of PyTorch, within the tolerances.
inline void expect_golden(const Transformer& model, const std::string& prefix, const GoldenText& text,
                          double weight_tolerance, double hidden_tolerance) {
  const format::SafetensorsFile file = golden(prefix + text.name);
  const std::vector<int64_t> ids = ids_of(file);
  ASSERT_EQ(ids.size(), text.tokens);
  const Drift found = drift(Seen(model, ids), file);
  testing::Test::RecordProperty("weights", fmt::format("{:.2e}", found.weights));
  testing::Test::RecordProperty("hidden", fmt::format("{:.2e}", found.hidden));
  EXPECT_LE(found.weights, weight_tolerance);
  EXPECT_LE(found.hidden, hidden_tolerance);
}

}  // namespace clearhead::model::encoder
