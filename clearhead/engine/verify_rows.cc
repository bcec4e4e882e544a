// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/verify_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "clearhead/attention/sequence.h"
#include "clearhead/kernels/reference.h"

namespace clearhead::engine {
namespace {

constexpr double kUnseen = -std::numeric_limits<double>::infinity();
constexpr size_t kPowerSteps = 10;     // that 2^t takes, about
constexpr double kWeightBound = 1e-6;  // absolute

// 2^(t - reference), and exactly 0 for a key that may not be seen.
double power(double score, double reference) { return score == kUnseen ? 0 : std::exp2(score - reference); }

// Calls body(row) for every row [seq], in parallel; a key of a row takes so many steps.
template <class Body>
void for_each_row(const HeadRows& rows, size_t steps, const Body& body) {
  for_each_unit(rows.count(), rows.seq * steps, body);
}

}  // namespace

size_t HeadRows::kv_index(size_t index) const {
  const auto found = std::ranges::find(kv_heads, config.kv_head_of(heads[index]));
  return static_cast<size_t>(found - kv_heads.begin());
}

double HeadRows::sink_score(std::span<const float> sinks, size_t head) {
  return sinks.empty() ? kUnseen : static_cast<double>(sinks[head] * std::numbers::log2e_v<float>);
}

namespace {

// Calls body(row, j, q, k) for every row and key j, with the vectors that meet there.
template <class Body>
void for_each_pair(const HeadRows& rows, std::span<const double> query, std::span<const double> key, const Body& body) {
  const size_t seq = rows.seq, head_dim = rows.config.head_dim;
  for_each_row(rows, head_dim, [&](size_t row) {
    const size_t head = rows.index_of(row), i = rows.query_of(row), kv_head = rows.kv_index(head);
    const auto q = query.subspan((i * rows.heads.size() + head) * head_dim, head_dim);
    for (size_t j = 0; j < seq; ++j) {
      body(row, j, q, key.subspan((j * rows.kv_heads.size() + kv_head) * head_dim, head_dim));
    }
  });
}

}  // namespace

Bounded raw_scores(const HeadRows& rows, std::span<const double> query, std::span<const double> key) {
  Bounded result(rows.count() * rows.seq);
  for_each_pair(rows, query, key, [&](size_t row, size_t j, auto q, auto k) {
    result.values[row * rows.seq + j] = kernels::reference::dot(q, k);
    result.bounds[row * rows.seq + j] = sum_bound(q.size(), magnitude_of(q, k));
  });
  return result;
}

Bounded scores(const HeadRows& rows, std::span<const double> query, std::span<const double> key, double unit) {
  constexpr double kTanhRoundings = 8;  // 3 ULP of kernels::tanh, the cap's factor and its product
  constexpr double kBiasRoundings = 4;  // the bias, its unit, and their sum with the score
  const attention::AttentionConfig& config = rows.config;
  const attention::Sequence text{0, 0, rows.seq, 0, rows.seq, config.key_offset};
  const double scale = config.scale ? double{*config.scale} : 1 / std::sqrt(static_cast<double>(config.head_dim));
  Bounded result(rows.count() * rows.seq);
  for_each_pair(rows, query, key, [&](size_t row, size_t j, auto q, auto k) {
    const size_t at = row * rows.seq + j, i = rows.query_of(row);
    double &value = result.values[at], &bound = result.bounds[at];
    const auto [begin, end] = attention::visible_keys(config, text, i);
    if (j < begin || j >= end) {
      value = kUnseen;
      return;
    }
    value = unit * scale * kernels::reference::dot(q, k);
    bound = sum_bound(q.size(), std::abs(unit * scale) * magnitude_of(q, k));
    if (config.soft_cap) {
      const double cap = unit * *config.soft_cap;
      value = cap * std::tanh(value / cap);
      bound += kTanhRoundings * kRounding * std::abs(value);
    }
    if (!config.alibi_slopes.empty()) {
      const auto distance = static_cast<double>(static_cast<int64_t>(j) - attention::position_of(config, text, i));
      const double bias = unit * config.alibi_slopes[rows.heads[rows.index_of(row)]] * distance;
      value += bias;
      bound += kBiasRoundings * kRounding * (std::abs(bias) + std::abs(value));
    }
  });
  return result;
}

RowSummary summarise(std::span<const double> kernel_scores, double sink) {
  double largest = kUnseen;
  for (double score : kernel_scores) {
    if (std::isnan(score) || score == -kUnseen) return {0, std::numeric_limits<double>::quiet_NaN()};
    largest = std::max(largest, score);
  }
  if (largest == kUnseen) return {kUnseen, 0};
  RowSummary row{std::ceil(std::max(largest, sink)), 0};
  row.sum = power(sink, row.reference);
  for (double score : kernel_scores) row.sum += power(score, row.reference);
  return row;
}

Bounded row_references(const HeadRows& rows, std::span<const double> kernel_scores) {
  Bounded result(rows.count());
  for_each_row(rows, kPowerSteps, [&](size_t row) {
    result.values[row] =
        summarise(kernel_scores.subspan(row * rows.seq, rows.seq), rows.sink(rows.index_of(row))).reference;
  });
  return result;
}

Bounded row_sums(const HeadRows& rows, std::span<const double> kernel_scores, std::span<const double> row_reference) {
  Bounded result(rows.count());
  for_each_row(rows, kPowerSteps, [&](size_t row) {
    const auto scores = kernel_scores.subspan(row * rows.seq, rows.seq);
    const RowSummary summary = summarise(scores, rows.sink(rows.index_of(row)));
    result.values[row] = summary.sum;
    if (std::isnan(summary.sum) || summary.reference == kUnseen) return;
    const double reference = row_reference.empty() ? summary.reference : row_reference[row];
    double sum = 0, exponents = 0;
    const auto add = [&](double score) {
      const double term = power(score, reference);
      sum += term;
      if (term > 0) exponents += term * std::abs(score - reference);
    };
    std::ranges::for_each(scores, add);
    add(rows.sink(rows.index_of(row)));
    result.values[row] = sum;
    result.bounds[row] = sum_bound(rows.seq, sum) + kRounding * exponents + static_cast<double>(rows.seq) * kSmallest;
  });
  return result;
}

Bounded weights(const HeadRows& rows, std::span<const double> kernel_scores) {
  Bounded result(kernel_scores.size());
  for_each_row(rows, kPowerSteps, [&](size_t row) {
    const auto scores = kernel_scores.subspan(row * rows.seq, rows.seq);
    const RowSummary summary = summarise(scores, rows.sink(rows.index_of(row)));
    for (size_t j = 0; j < rows.seq; ++j) {
      if (scores[j] == kUnseen) continue;
      result.values[row * rows.seq + j] = power(scores[j], summary.reference) / summary.sum;
      result.bounds[row * rows.seq + j] = kWeightBound;
    }
  });
  return result;
}

Bounded head_outputs(const HeadRows& rows, std::span<const double> kernel_scores, std::span<const double> value) {
  const size_t seq = rows.seq, value_dim = rows.config.value_dim;
  Bounded result(rows.count() * value_dim);
  for_each_row(rows, value_dim, [&](size_t row) {
    const size_t kv_head = rows.kv_index(rows.index_of(row)), start = row * value_dim;
    const auto scores = kernel_scores.subspan(row * seq, seq);
    const RowSummary summary = summarise(scores, rows.sink(rows.index_of(row)));
    for (size_t j = 0; j < seq; ++j) {
      if (scores[j] == kUnseen) continue;
      const double weight = power(scores[j], summary.reference) / summary.sum;
      const double rounding = 2 * (static_cast<double>(seq) + 8) + std::abs(scores[j] - summary.reference);
      for (size_t d = 0; d < value_dim; ++d) {
        const double v = value[(j * rows.kv_heads.size() + kv_head) * value_dim + d];
        result.values[start + d] += weight * v;
        // What is lost to a power below 2^-126 is at most 2^-125 of the value, for the sum is at least 1/2.
        result.bounds[start + d] += (rounding * kRounding * weight + 2 * kSmallest) * std::abs(v) + kSmallest;
      }
    }
  });
  return result;
}

}  // namespace clearhead::engine
