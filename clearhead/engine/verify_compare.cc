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

}  // namespace

bool note_difference(StageCheck& check, double found, double expected, double bound) {
  const double apart = difference(found, expected), share = share_of(found, apart, bound);
  check.max_abs = std::max(check.max_abs, apart);
  if (share <= check.worst_share && !(check.at.empty() && check.tolerance == 0)) return false;
  check.worst_share = std::max(check.worst_share, share);
  check.tolerance = bound;
  return true;
}

StageCheck compare(Stage stage, size_t layer, const tensor::TensorView& found, const Bounded& expected) {
  StageCheck check{.stage = stage, .layer = layer};
  const auto values = found.as<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (note_difference(check, static_cast<double>(values[i]), expected.values[i], expected.bounds[i])) {
      check.at = index_of(i, found.shape());
    }
  }
  return check;
}

double drift_share() { return kDriftShare; }
double drift_bound(double largest) { return kDriftShare * largest + kSmallest; }

StageCheck compare_drift(Stage stage, size_t layer, const capture::Trace& trace, const Bounded& truth) {
  const tensor::TensorView found = trace.tensor(stage, layer);
  Bounded expected(0);
  expected.values = cut_like(found.shape(), stage, trace.info(), truth.values);
  expected.bounds.assign(expected.values.size(), drift_bound(largest_of(truth.values)));
  return compare(stage, layer, found, expected);
}

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

}  // namespace clearhead::engine
