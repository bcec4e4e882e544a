// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "clearhead/attention/sequence.h"
#include "clearhead/kernels/row_collect.h"
#include "clearhead/kernels/row_evidence.h"
#include "clearhead/kernels/softmax.h"

namespace clearhead::attention {

// Keys whose weights are added up: those that are listed, or the one so far from the query's own position.
struct KeyGroup {
  std::vector<std::vector<size_t>> keys = {};  // in its sequence, rising: one list for all sequences, or one for each
  std::optional<int64_t> distance = std::nullopt;  // 0: the query's own key, -1: the one before it
};

// A map of a head: queries and keys of a sequence cut into cells as equal as can be. Cell i of n begins at i length /
// n; where there are more cells than tokens, some are empty.
struct OverviewBins {
  size_t queries, keys;
};

// What one pass of fused attention says about each row beside its output. Rows that see nothing have zeros, rows that
// are NaN have NaN. A learned sink takes its share of the weights, but is no key.
struct RowStatistics {
  // Chosen by the caller.
  std::vector<KeyGroup> groups = {};                    // any number
  size_t top = 0;                                       // how many of its strongest keys each row names
  std::optional<OverviewBins> overview = std::nullopt;  // absent: no map

  std::vector<float> entropy = {};           // [batch, num_heads, query_len]: -sum_j p_ij ln p_ij, in nats
  std::vector<float> mean_distance = {};     // [batch, num_heads, query_len]: sum_j p_ij |j - position of i|
  std::vector<float> strongest_weight = {};  // [batch, num_heads, query_len]
  std::vector<size_t> strongest_key = {};    // [batch, num_heads, query_len], in its sequence; the lower of equal ones
  std::vector<float> group_mass = {};        // [batch, num_heads, query_len, groups]: the group's weights added up

  // The strongest keys in falling order of their scores, of equal ones the lower key first; kernels::kNoKey, with
  // weight 0, where a row sees no more, and with NaN where it is NaN. Weights are bit for bit those that the exact path
  // shows.
  std::vector<float> top_weight = {};  // [batch, num_heads, query_len, top]
  std::vector<uint32_t> top_key = {};  // [batch, num_heads, query_len, top], in its sequence

  // Of the weights in each cell, rows added in order in double. A row that is NaN makes its cells NaN.
  std::vector<double> overview_sum = {};     // [sequences, num_heads, query bins, key bins]
  std::vector<float> overview_maximum = {};  // [sequences, num_heads, query bins, key bins]

  // Room for rows of sequences, all zero. Throws: Error (usage) for what cannot be asked for.
  void prepare(size_t rows, size_t num_heads, std::span<const Sequence> sequences);

  // Whether anything is asked for beside what evidence holds.
  bool collects() const { return top > 0 || !groups.empty() || overview.has_value(); }

  // Turns the evidence of rows that stand one after another into their statistics, at most kernels::kMostRows. keys
  // are their summaries before any sink, summaries those after it.
  void set(size_t first_row, std::span<const kernels::RowEvidence> evidence, std::span<const kernels::RowSummary> keys,
           std::span<const kernels::RowSummary> summaries);
};

}  // namespace clearhead::attention
