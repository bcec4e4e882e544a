// SPDX-License-Identifier: Apache-2.0
#include "clearhead/capture/recorder.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "clearhead/base/version.h"
#include "clearhead/tensor/compare.h"
#include "tests/capture/small_trace.h"
#include "tests/support/error_text.h"

namespace clearhead::capture {
namespace {

using tests::counting;
using tests::error_text;
using Indices = std::vector<size_t>;

std::vector<float> values(const tensor::TensorView& tensor) {
  return {tensor.as<float>().begin(), tensor.as<float>().end()};
}

TraceInfo four_heads() {
  TraceInfo info;
  info.num_layers = 2;
  info.num_heads = 4;
  return info;
}

TEST(Recorder, KeepsWhatIsSelectedAndSaysSo) {
  Recorder recorder({{Stage::embedding, Stage::weights}, Indices{1}, std::nullopt}, four_heads(), 4);
  EXPECT_TRUE(recorder.wants(Stage::embedding, 0));
  EXPECT_TRUE(recorder.wants(Stage::weights, 1));
  EXPECT_FALSE(recorder.wants(Stage::weights, 0));
  EXPECT_FALSE(recorder.wants(Stage::query, 1));
  const tensor::Tensor embedding = counting({1, 2, 3}), weights = counting({1, 4, 2, 2});
  recorder.observe(Stage::embedding, 0, embedding);
  recorder.observe(Stage::weights, 0, weights);
  recorder.observe(Stage::weights, 1, weights);
  const Trace trace = std::move(recorder).take();
  EXPECT_TRUE(tensor::same_bits(trace.tensor(Stage::embedding), embedding));
  EXPECT_TRUE(tensor::same_bits(trace.tensor(Stage::weights, 1), weights));
  EXPECT_FALSE(trace.has(Stage::weights, 0));
  EXPECT_EQ(trace.info().layers, (Indices{1}));
  EXPECT_EQ(trace.info().heads, (Indices{0, 1, 2, 3}));
  EXPECT_EQ(trace.info().num_kv_heads, 4u);
  EXPECT_EQ(trace.info().version, base::kVersion);
  EXPECT_EQ(trace.bytes(), (6 + 16) * sizeof(float));
}

TEST(Recorder, CutsTheHeadAxis) {
  Recorder recorder({{Stage::query, Stage::row_sum}, std::nullopt, Indices{0, 3}}, four_heads(), 4);
  recorder.observe(Stage::query, 0, counting({1, 2, 4, 2}));
  recorder.observe(Stage::row_sum, 0, counting({1, 4, 3}));
  const Trace trace = std::move(recorder).take();
  EXPECT_EQ(trace.tensor(Stage::query, 0).shape(), (tensor::Shape{1, 2, 2, 2}));
  EXPECT_EQ(values(trace.tensor(Stage::query, 0)), (std::vector<float>{0, 1, 6, 7, 8, 9, 14, 15}));
  EXPECT_EQ(trace.tensor(Stage::row_sum, 0).shape(), (tensor::Shape{1, 2, 3}));
  EXPECT_EQ(values(trace.tensor(Stage::row_sum, 0)), (std::vector<float>{0, 1, 2, 9, 10, 11}));
}

TEST(Recorder, KeepsTheKvHeadsThatTheSelectedHeadsRead) {
  const auto kept = [](Indices heads) {
    Recorder recorder({{Stage::key}, std::nullopt, std::move(heads)}, four_heads(), 2);
    recorder.observe(Stage::key, 0, counting({1, 1, 2, 1}));
    const Trace trace = std::move(recorder).take();
    return std::pair(trace.info().kv_heads(), values(trace.tensor(Stage::key, 0)));
  };
  EXPECT_EQ(kept({0, 1}), std::pair(Indices{0}, std::vector<float>{0}));
  EXPECT_EQ(kept({3}), std::pair(Indices{1}, std::vector<float>{1}));
  EXPECT_EQ(kept({1, 2}), std::pair((Indices{0, 1}), (std::vector<float>{0, 1})));
}

TEST(Recorder, AnyCutKeepsThePlacesOfTheHeads) {
  EXPECT_TRUE(rc::check("kept[o, i] = all[o, heads[i]]", [] {
    const size_t batch = *rc::gen::inRange<size_t>(1, 3), rows = *rc::gen::inRange<size_t>(0, 4);
    const auto chosen = *rc::gen::inRange<size_t>(0, 16);  // a bit for each head
    Indices heads;
    for (size_t head = 0; head < 4; ++head) {
      if ((chosen >> head) % 2 == 1) heads.push_back(head);
    }
    Recorder recorder({{Stage::row_sum}, std::nullopt, heads}, four_heads(), 1);
    const tensor::Tensor all = counting({batch, 4, rows});
    recorder.observe(Stage::row_sum, 1, all);
    const Trace trace = std::move(recorder).take();
    const tensor::TensorView kept = trace.tensor(Stage::row_sum, 1);
    RC_ASSERT(kept.shape() == (tensor::Shape{batch, heads.size(), rows}));
    for (size_t o = 0; o < batch; ++o) {
      for (size_t i = 0; i < heads.size(); ++i) {
        for (size_t r = 0; r < rows; ++r) {
          RC_ASSERT(kept.as<float>()[(o * heads.size() + i) * rows + r] ==
                    all.as<float>()[(o * 4 + heads[i]) * rows + r]);
        }
      }
    }
  }));
}

TEST(Recorder, RefusesWhatTheModelDoesNotHave) {
  const auto complaint = [](Selection selection, size_t num_kv_heads) {
    return error_text([&] { Recorder(std::move(selection), four_heads(), num_kv_heads); });
  };
  EXPECT_EQ(complaint({{}, Indices{0, 2}, std::nullopt}, 4),
            "usage: [recorder] expected layers below 2 that rise; found 2");
  EXPECT_EQ(complaint({{}, std::nullopt, Indices{4}}, 4),
            "usage: [recorder] expected heads below 4 that rise; found 4");
  EXPECT_EQ(complaint({{}, std::nullopt, Indices{1, 1}}, 4),
            "usage: [recorder] expected heads below 4 that rise; found 1");
  EXPECT_EQ(complaint({}, 3), "usage: [recorder] expected num_kv_heads that divides num_heads; found 3 and 4");
  EXPECT_EQ(complaint({}, 0), "usage: [recorder] expected num_kv_heads that divides num_heads; found 0 and 4");
}

}  // namespace
}  // namespace clearhead::capture
