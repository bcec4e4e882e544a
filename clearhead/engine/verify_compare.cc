// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/verify_compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>

#include "clearhead/engine/verify_rows.h"

namespace clearhead::engine {
namespace {

using capture::Stage;
using Values = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kDriftShare = 1e-4;  // of the largest value of a stage

// NaN against NaN and equal infinities are no difference, against anything else an infinite one.
double difference(double found, double expected) {
  if (found == expected || (std::isnan(found) && std::isnan(expected))) return 0;
  const double result = std::abs(found - expected);
  return std::isnan(result) ? kInfinity : result;
}

// What part of the bound a difference uses up. A NaN proves nothing, not even beside another.
double share_of(double found, double difference, double bound) {
  if (std::isnan(found)) return kInfinity;
  if (difference == 0) return 0;
  return difference < kInfinity && bound > 0 ? difference / bound : kInfinity;
}

std::vector<size_t> index_of(size_t flat, const tensor::Shape& shape) {
  std::vector<size_t> index(shape.rank());
  for (size_t axis = shape.rank(); axis-- > 0;) {
    index[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return index;
}

double largest_of(std::span<const double> values) {
  double largest = 0;
  for (double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

// Copies what kept names along the head axis. Shapes: all [outer, count, inner], result [outer, kept, inner].
Values keep_heads(const Values& all, std::span<const size_t> kept, size_t count, size_t inner) {
  Values result;
  for (size_t outer = 0; outer < all.size() / (count * inner); ++outer) {
    for (size_t head : kept) {
      const auto start = all.begin() + static_cast<std::ptrdiff_t>((outer * count + head) * inner);
      result.insert(result.end(), start, start + static_cast<std::ptrdiff_t>(inner));
    }
  }
  return result;
}

// values of all heads, cut to those that stand on the head axis of found.
Values cut_like(const tensor::Shape& found, Stage stage, const capture::TraceInfo& info, const Values& values) {
  const auto axis = capture::info(stage).head_axis;
  if (!axis) return values;
  const bool of_kv_heads = capture::axes(stage)[*axis] == "kv_heads";
  size_t inner = 1;
  for (size_t i = *axis + 1; i < found.rank(); ++i) inner *= found[i];
  return of_kv_heads ? keep_heads(values, info.kv_heads(), info.num_kv_heads, inner)
                     : keep_heads(values, info.heads, info.num_heads, inner);
}

// One row of kernel scores, and how far the largest of them may be off.
struct ScoreRow {
  std::span<const double> scores;
  double sink, drift;
};

// The row's reference or sum, as found would be right.
double settled(double found, Stage stage, const ScoreRow& scores) {
  const RowSummary row = summarise(scores.scores, scores.sink);
  if (!std::isfinite(row.reference) || !std::isfinite(row.sum)) {
    return stage == Stage::row_sum ? row.sum : row.reference;
  }
  const double largest = std::max(std::ranges::max(scores.scores), scores.sink);
  double best = kInfinity;
  for (double reference : {row.reference, std::ceil(largest - scores.drift), std::ceil(largest + scores.drift)}) {
    const double right = stage == Stage::row_sum ? row.sum * std::exp2(row.reference - reference) : reference;
    if (difference(found, right) < difference(found, best)) best = right;
  }
  return best;
}

}  // namespace

StageCheck compare(Stage stage, size_t layer, const tensor::Tensor& found, const Bounded& expected) {
  StageCheck check{.stage = stage, .layer = layer};
  const auto values = found.as<float>();
  size_t worst = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double apart = difference(static_cast<double>(values[i]), expected.values[i]);
    const double share = share_of(static_cast<double>(values[i]), apart, expected.bounds[i]);
    check.max_abs = std::max(check.max_abs, apart);
    if (share <= check.worst_share) continue;
    check.worst_share = share;
    worst = i;
  }
  check.tolerance = expected.bounds[worst];
  check.at = index_of(worst, found.shape());
  return check;
}

StageCheck compare_drift(const Drift& drift, size_t layer, const Bounded& truth) {
  const capture::TraceInfo& info = drift.trace.info();
  const tensor::Tensor& found = drift.trace.tensor(drift.stage, layer);
  const auto values = found.as<float>();
  Bounded expected(0);
  expected.values = cut_like(found.shape(), drift.stage, info, truth.values);
  if (drift.stage == Stage::row_reference || drift.stage == Stage::row_sum) {
    const size_t seq = info.tokens.size();
    const double off = kDriftShare * largest_of(*drift.kernel_scores);
    for (size_t i = 0; i < expected.values.size(); ++i) {
      const size_t head = info.heads[i / seq], row = head * seq + i % seq;
      const ScoreRow scores{std::span(*drift.kernel_scores).subspan(row * seq, seq),
                            HeadRows::sink_score(drift.sinks, head), off};
      expected.values[i] = settled(static_cast<double>(values[i]), drift.stage, scores);
    }
  }
  expected.bounds.assign(expected.values.size(), kDriftShare * largest_of(truth.values) + kSmallest);
  if (drift.stage == Stage::row_reference) std::ranges::fill(expected.bounds, 0.0);
  return compare(drift.stage, layer, found, expected);
}

}  // namespace clearhead::engine
