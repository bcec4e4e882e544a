// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <string_view>

#include "clearhead/attention/merge.h"
#include "clearhead/base/error.h"
#include "clearhead/kernels/attention_tile.h"
#include "clearhead/kernels/elementary.h"
#include "clearhead/tensor/shape.h"

namespace clearhead::attention {
namespace {

constexpr std::string_view kWhere = "attention statistics";

void check_group(const KeyGroup& group, size_t sequences) {
  if (group.distance.has_value() == !group.keys.empty()) {
    base::refuse(kWhere, "a group of keys to have either lists of keys or a distance",
                 group.distance ? "both" : "neither");
  }
  if (group.distance) return;
  if (group.keys.size() != 1 && group.keys.size() != sequences) {
    base::refuse(kWhere, fmt::format("a group of keys to have one list, or one for each of {} sequences", sequences),
                 fmt::format("{}", group.keys.size()));
  }
  for (const std::vector<size_t>& keys : group.keys) {
    if (std::ranges::adjacent_find(keys, std::greater_equal<>()) == keys.end()) continue;
    base::refuse(kWhere, "the keys of a group in rising order", "others");
  }
}

}  // namespace

void RowStatistics::prepare(size_t rows, size_t num_heads, std::span<const Sequence> sequences) {
  for (const KeyGroup& group : groups) check_group(group, sequences.size());
  if (top > kernels::kMostTop) {
    base::refuse(kWhere, fmt::format("at most {} strongest keys", kernels::kMostTop), fmt::format("{}", top));
  }
  size_t cells = 0;
  if (overview) {
    if (overview->queries == 0 || overview->keys == 0) {
      base::refuse(kWhere, "a map of at least 1 x 1 cells", fmt::format("{} x {}", overview->queries, overview->keys));
    }
    const tensor::Shape maps{sequences.size(), num_heads, overview->queries, overview->keys, sizeof(double)};
    if (!maps.checked_elements()) base::refuse(kWhere, "maps that fit in memory", maps.text());
    cells = *maps.checked_elements() / sizeof(double);
  }
  entropy.assign(rows, 0.0f);
  mean_distance.assign(rows, 0.0f);
  strongest_weight.assign(rows, 0.0f);
  strongest_key.assign(rows, 0);
  group_mass.assign(rows * groups.size(), 0.0f);
  top_weight.assign(rows * top, 0.0f);
  top_key.assign(rows * top, kernels::kNoKey);
  overview_sum.assign(cells, 0.0);
  overview_maximum.assign(cells, 0.0f);
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
    const size_t row = first_row + i;
    if (std::isnan(summaries[i].sum)) {
      entropy[row] = mean_distance[row] = strongest_weight[row] = summaries[i].sum;
      continue;
    }
    if (!has_seen(summaries[i])) continue;
    // A sink may have raised the reference: everything moves by a power of two.
    const float raised = summaries[i].reference - keys[i].reference, factor = raised > 126 ? 0.0f : std::exp2(-raised);
    const kernels::RowEvidence& one = evidence[i];
    const float bits = (keys[i].sum * logs[i] - (one.score_sum - keys[i].sum * raised)) * factor / summaries[i].sum;
    const float nats = bits * std::numbers::ln2_v<float>;
    entropy[row] = nats < 0 ? 0.0f : nats;
    mean_distance[row] = one.distance_sum * factor / summaries[i].sum;
    strongest_weight[row] = largest[i] / summaries[i].sum;
    strongest_key[row] = one.key;
  }
}

}  // namespace clearhead::attention
