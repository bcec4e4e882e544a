// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "clearhead/attention/config.h"
#include "clearhead/engine/verify_bounded.h"

namespace clearhead::engine {

// The stages between query, key, value and head_output, in double. All spans hold one text, batch axis left out.

// Which heads stand on the head axes, how many tokens there are, and which rows of [heads, seq] are worked on: what is
// made of [heads, seq] below has these rows only.
struct HeadRows {
  const attention::AttentionConfig& config;
  std::span<const size_t> heads;     // [heads] of the model, in the order of the axis
  std::span<const size_t> kv_heads;  // [kv_heads] that they read
  size_t seq = 0;
  size_t first = 0;                 // row head * seq + query
  std::optional<size_t> some = {};  // rows from there on; absent: all

  size_t count() const { return some ? *some : heads.size() * seq - first; }
  size_t index_of(size_t row) const { return (first + row) / seq; }  // place of its head on the axis
  size_t query_of(size_t row) const { return (first + row) % seq; }

  // The place on the kv axis of what the head at place index reads.
  size_t kv_index(size_t index) const;
  // The kernel score of the sink of the head at place index; -infinity if it has none.
  double sink(size_t index) const { return sink_score(config.sinks, heads[index]); }

  static double sink_score(std::span<const float> sinks, size_t head);
};

// q . k, whatever may be seen. Shapes: query [seq, heads, head_dim], key [seq, kv_heads, head_dim], result [rows, seq].
Bounded raw_scores(const HeadRows& rows, std::span<const double> query, std::span<const double> key);

// The scores of AttentionConfig times unit: 1, or log2 e for kernel scores; -infinity where the causal rule or a window
// hides the key. What the product may be off is carried through the soft cap, whose slope is at most 1, and the errors
// of tanh and of the bias are added. Shapes as above.
Bounded scores(const HeadRows& rows, std::span<const double> query, std::span<const double> key, double unit);

// The reference and sum of one row of kernel scores with its sink (-infinity for none): ceil(max t) and sum 2^(t -
// reference); -infinity and 0 if no key may be seen, 0 and NaN if a score is NaN or +infinity.
struct RowSummary {
  double reference, sum;
};
RowSummary summarise(std::span<const double> kernel_scores, double sink);

// Stages made of kernel scores [rows, seq]. row_reference may be empty: then it is recomputed.
// Shapes: row_reference, results [rows]; weights [rows, seq].
Bounded row_references(const HeadRows& rows, std::span<const double> kernel_scores);
Bounded row_sums(const HeadRows& rows, std::span<const double> kernel_scores, std::span<const double> row_reference);
Bounded weights(const HeadRows& rows, std::span<const double> kernel_scores);

// The values, weighted. The bound is that of a sum of seq products, twice because the sum that they are divided by is
// as long, and |t - reference| 2^-24 more for each term: the rounding of its exponent. Shapes: value [seq, kv_heads,
// value_dim], result [rows, value_dim].
Bounded head_outputs(const HeadRows& rows, std::span<const double> kernel_scores, std::span<const double> value);

}  // namespace clearhead::engine
