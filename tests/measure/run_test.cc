// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "clearhead/attention/exact.h"
#include "clearhead/base/parallel.h"
#include "clearhead/measure/attention_run.h"
#include "clearhead/measure/benchmark.h"
#include "clearhead/measure/bf16_rounds.h"
#include "clearhead/measure/machine.h"
#include "tests/support/error_text.h"
#include "tests/support/targets.h"

namespace clearhead {
namespace {

using measure::AttentionRun;
using measure::AttentionShape;
using measure::Evidence;

const measure::Options kQuick{.threads = {1, 2}, .effort = {1, 1, 0, 0}, .progress = [] {}};

tensor::Tensor counted(tensor::Shape shape) {
  tensor::Tensor result(std::move(shape));
  auto values = result.as<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) / 8 - 1;
  return result;
}

TEST(AttentionRunTest, ComputesWhatItWasGiven) {
  const auto shape = AttentionShape::parse("2x4/2 5 of 300 16 causal");
  const auto query = counted({2, 5, 4, 16}), key = counted({2, 300, 2, 16}), value = counted({2, 300, 2, 16});
  AttentionRun run(shape, query, key, value);
  EXPECT_TRUE(run.is_right());
  const attention::AttentionInput input{2, 5, 300, query.as<float>(), key.as<float>(), value.as<float>(), {}};
  const auto want = attention::exact_attention(shape.config(), input);
  EXPECT_TRUE(std::ranges::equal(run.head_output(), want.head_output.as<float>()));
  const std::vector<float> plain(run.head_output().begin(), run.head_output().end());
  for (const Evidence evidence : measure::kEvidence) {
    run.run(evidence);
    EXPECT_TRUE(std::ranges::equal(run.head_output(), plain)) << measure::name_of(evidence);
  }
}

TEST(AttentionRunTest, RefusesInputsOfAnotherShape) {
  const auto shape = AttentionShape::parse("1x2 4 8");
  const auto right = counted({1, 4, 2, 8}), wrong = counted({1, 4, 8, 2});
  EXPECT_EQ(tests::error_text([&] { AttentionRun(shape, right, wrong, right); }),
            "usage: [attention inputs] expected key of type F32 and shape [1, 4, 2, 8]; found F32 [1, 4, 8, 2]");
}

TEST(AttentionRunTest, TellsTheMemoryOfARun) {
  AttentionRun run(AttentionShape::parse("1x2 1024 64 causal"));
  for (const Evidence evidence : measure::kEvidence) {
    const auto bytes = run.working_bytes(evidence);
    EXPECT_LT(bytes.value_or(0), size_t{64} << 20) << measure::name_of(evidence);
  }
}

TEST(PeakTest, IsThereOnEveryTarget) {
  tests::for_each_target([](const std::string&) {
    for (const size_t threads : {1, 2}) {
      const measure::Peak peak = measure::measure_peak(threads);
      EXPECT_GT(peak.multiply_add_gflops, 0);
      EXPECT_GT(peak.exp2_giga, 0);
      const double limit = measure::attention_limit(peak, 64);
      EXPECT_GT(limit, measure::attention_limit(peak, 32));
      EXPECT_LT(limit, 1);
    }
  });
}

TEST(PeakTest, LimitIsTheShareOfTheProducts) {
  // 256 operations at 128 a unit of time are 2 units; one power at 2 a unit is half of one.
  EXPECT_DOUBLE_EQ(measure::attention_limit({128, 2, {}}, 64), 2 / 2.5);
}

TEST(ClockTest, TakesTurns) {
  std::vector<int> order;
  const measure::Turn turns[] = {[&] { return order.push_back(0), 3.0; }, [&] { return order.push_back(1), 5.0; }};
  const auto results =
      measure::take_turns(turns, {.least_rounds = 3, .most_rounds = 9, .seconds = 0, .turn_seconds = 0});
  EXPECT_EQ(order, (std::vector<int>{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(results, (std::vector<std::vector<double>>{{3, 3, 3}, {5, 5, 5}}));
  EXPECT_EQ(
      measure::take_turns(turns, {.least_rounds = 1, .most_rounds = 4, .seconds = 1e9, .turn_seconds = 0})[0].size(),
      4u);
  EXPECT_EQ(measure::median_of({5, 1, 3}), 3);
  EXPECT_EQ(measure::median_of({4, 1, 3, 2}), 2);
}

TEST(BenchmarkTest, HasARowForEachChoice) {
  const size_t before = base::num_threads();
  measure::Report report;
  const AttentionShape shapes[] = {AttentionShape::parse("1x2 16 8"), AttentionShape::parse("1x2/1 16 8 causal")};
  measure::measure_peaks(kQuick, report);
  measure::measure_attention(shapes, kQuick, report);
  ASSERT_EQ(report.peaks.size(), 2u);
  ASSERT_EQ(report.rows.size(), 4 * (std::size(measure::kEvidence) + (measure::has_bf16_products() ? 1 : 0)));
  for (const measure::Row& row : report.rows) {
    EXPECT_GT(row.seconds, 0);
    EXPECT_LE(row.best_seconds, row.seconds);
    EXPECT_DOUBLE_EQ(*row.gflops, AttentionShape::parse(row.shape).operations() / row.seconds / 1e9);
    EXPECT_DOUBLE_EQ(*row.share, *row.gflops / *row.peak_gflops);
  }
  EXPECT_EQ(base::num_threads(), before);
}

TEST(BenchmarkTest, RunsAWholeModel) {
  const auto session = engine::Session::open("toy d_model=32 heads=4 seed=7");
  const measure::EncoderShape shapes[] = {{2, 5}};
  measure::Report report;
  measure::measure_encoder(session, shapes, kQuick, report);
  ASSERT_EQ(report.rows.size(), 2u);
  EXPECT_DOUBLE_EQ(*report.rows[0].tokens_per_second, 10 / report.rows[0].seconds);
}

TEST(MachineTest, IsDescribed) {
  const measure::Machine machine = measure::describe_machine();
  EXPECT_FALSE(machine.cpu.empty());
  EXPECT_FALSE(machine.features.empty());
  EXPECT_EQ(machine.cores, base::available_threads());
}

}  // namespace
}  // namespace clearhead
