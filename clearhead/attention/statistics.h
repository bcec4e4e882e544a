// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "clearhead/kernels/row_evidence.h"
#include "clearhead/kernels/softmax.h"

namespace clearhead::attention {

// What one pass of fused attention says about each row beside its output. Rows that see nothing have zeros, rows that
// are NaN have NaN. A learned sink takes its share of the weights, but is no key.
struct RowStatistics {
  std::vector<kernels::KeyGroup> groups;  // chosen by the caller, at most kernels::kMostGroups

  std::vector<float> entropy;           // [batch, num_heads, query_len]: -sum_j p_ij ln p_ij, in nats
  std::vector<float> mean_distance;     // [batch, num_heads, query_len]: sum_j p_ij |j - position of i|
  std::vector<float> strongest_weight;  // [batch, num_heads, query_len]
  std::vector<size_t> strongest_key;    // [batch, num_heads, query_len], in its sequence; the lower of equal ones
  std::vector<float> group_mass;        // [batch, num_heads, query_len, groups]: the group's weights added up

  // Room for rows, all zero. Throws: Error (usage) for too many groups.
  void resize(size_t rows);

  // Turns the evidence of rows that stand one after another into their statistics, at most kernels::kMostRows. keys
  // are their summaries before any sink, summaries those after it.
  void set(size_t first_row, std::span<const kernels::RowEvidence> evidence, std::span<const kernels::RowSummary> keys,
           std::span<const kernels::RowSummary> summaries);
};

}  // namespace clearhead::attention
