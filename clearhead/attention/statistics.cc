// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/statistics.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "clearhead/attention/merge.h"
#include "clearhead/base/error.h"
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

void RowStatistics::set(size_t row, const kernels::RowEvidence& evidence, const kernels::RowSummary& keys,
                        const kernels::RowSummary& summary) {
  if (!has_seen(summary)) return;
  const std::span<float> masses = std::span(group_mass).subspan(row * groups.size(), groups.size());
  if (std::isnan(summary.sum)) {
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    entropy[row] = mean_distance[row] = strongest_weight[row] = kNaN;
    for (float& mass : masses) mass = kNaN;
    return;
  }
  // A sink may have raised the reference: everything moves by a power of two.
  const float raised = summary.reference - keys.reference, factor = raised > 126 ? 0.0f : std::exp2(-raised);
  const float keys_sum = keys.sum * factor, score_sum = (evidence.score_sum - keys.sum * raised) * factor;
  float log_sum = summary.sum, largest = evidence.largest;
  kernels::log2({&log_sum, 1}, {&log_sum, 1});
  const float bits = (keys_sum * log_sum - score_sum) / summary.sum;
  entropy[row] = std::max(0.0f, bits * std::numbers::ln2_v<float>);
  mean_distance[row] = evidence.distance_sum * factor / summary.sum;
  kernels::weights_of_scores({&largest, 1}, {}, summary, {&strongest_weight[row], 1});
  strongest_key[row] = evidence.key;
  for (size_t g = 0; g < masses.size(); ++g) masses[g] = evidence.masses[g] * factor / summary.sum;
}

}  // namespace clearhead::attention
