// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/statistics.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numbers>

#include "clearhead/attention/merge.h"
#include "clearhead/base/error.h"
#include "clearhead/kernels/attention_tile.h"
#include "clearhead/kernels/elementary.h"

namespace clearhead::attention {

void RowStatistics::resize(size_t rows) {
  if (groups.size() > kernels::kMostGroups) {
    base::refuse("attention statistics", fmt::format("at most {} groups of keys", kernels::kMostGroups),
                 fmt::format("{}", groups.size()));
  }
  entropy.assign(rows, 0.0f);
  mean_distance.assign(rows, 0.0f);
  strongest_weight.assign(rows, 0.0f);
  strongest_key.assign(rows, 0);
  group_mass.assign(rows * groups.size(), 0.0f);
}

void RowStatistics::set(size_t first_row, std::span<const kernels::RowEvidence> evidence,
                        std::span<const kernels::RowSummary> keys, std::span<const kernels::RowSummary> summaries) {
  const size_t rows = evidence.size();
  std::array<float, kernels::kMostRows> logs, largest;
  for (size_t i = 0; i < rows; ++i) {
    logs[i] = summaries[i].sum;
    largest[i] = evidence[i].largest - summaries[i].reference;
  }
  kernels::log2(std::span(logs).first(rows), std::span(logs).first(rows));
  kernels::exp2(std::span(largest).first(rows), std::span(largest).first(rows));
  for (size_t i = 0; i < rows; ++i) {
    if (!has_seen(summaries[i])) continue;
    // A sink may have raised the reference: everything moves by a power of two.
    const float raised = summaries[i].reference - keys[i].reference, factor = raised > 126 ? 0.0f : std::exp2(-raised);
    const kernels::RowEvidence& one = evidence[i];
    const float bits = (keys[i].sum * logs[i] - (one.score_sum - keys[i].sum * raised)) * factor / summaries[i].sum;
    const float nats = bits * std::numbers::ln2_v<float>;
    const size_t row = first_row + i;
    entropy[row] = nats < 0 ? 0.0f : nats;
    mean_distance[row] = one.distance_sum * factor / summaries[i].sum;
    strongest_weight[row] = largest[i] / summaries[i].sum;
    strongest_key[row] = one.key;
    for (size_t g = 0; g < groups.size(); ++g) {
      group_mass[row * groups.size() + g] = one.masses[g] * factor / summaries[i].sum;
    }
    if (std::isnan(summaries[i].sum)) entropy[row] = mean_distance[row] = strongest_weight[row] = summaries[i].sum;
  }
}

}  // namespace clearhead::attention
