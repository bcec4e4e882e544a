// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/views/lesson.h"

namespace clearhead::views {

size_t strongest_key(const capture::Trace& trace, size_t layer, size_t head, size_t query) {
  const auto& heads = trace.info().heads;
  const auto axis = static_cast<size_t>(std::ranges::find(heads, head) - heads.begin());
  const capture::WeightSource& weights = trace.source(capture::Stage::weights, layer);
  const size_t seq = weights.key_len();
  std::vector<float> row(seq);
  weights.row(0, axis, query, row);
  const auto& tokens = trace.info().tokens;
  std::optional<size_t> best;
  for (size_t j = 0; j < seq; ++j) {
    if (j == query || tokens[j].special || row[j] == 0) continue;
    if (!best || row[j] > row[*best]) best = j;
  }
  if (best) return *best;
  return static_cast<size_t>(std::ranges::max_element(row) - row.begin());
}

LessonFocus choose_focus(const capture::Trace& trace, const std::vector<HeadSummary>& heads_in_order,
                         std::optional<size_t> from) {
  if (heads_in_order.empty()) base::fail("lesson", "weights of at least one head", "none");
  for (const HeadSummary& head : heads_in_order) {
    for (const Link& link : head.links) {
      if (!from || link.query == *from) return {head.layer, head.head, link.query, link.key};
    }
  }
  const HeadSummary& first = heads_in_order.front();
  const size_t query = from.value_or(0);
  return {first.layer, first.head, query, strongest_key(trace, first.layer, first.head, query)};
}

}  // namespace clearhead::views
