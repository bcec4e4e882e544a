// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/views/lesson.h"

namespace clearhead::views {

namespace {

constexpr float kWorthTelling = 0.01f;  // a smaller share is no answer to what a token looks at

std::vector<float> row_of(const capture::Trace& trace, size_t layer, size_t head, size_t query) {
  const auto& heads = trace.info().heads;
  const auto axis = static_cast<size_t>(std::ranges::find(heads, head) - heads.begin());
  const capture::WeightSource& weights = trace.source(capture::Stage::weights, layer);
  std::vector<float> row(weights.key_len());
  weights.row(0, axis, query, row);
  return row;
}

// The other word that a row gives most to; none if it gives to none.
std::optional<size_t> strongest_word(const capture::Trace& trace, const std::vector<float>& row, size_t query) {
  const auto& tokens = trace.info().tokens;
  std::optional<size_t> best;
  for (size_t j = 0; j < row.size(); ++j) {
    if (j == query || tokens[j].special || row[j] == 0) continue;
    if (!best || row[j] > row[*best]) best = j;
  }
  return best;
}

// The last token that is not special: it may see all others.
size_t last_word(const std::vector<capture::TraceToken>& tokens) {
  for (size_t i = tokens.size(); i > 0; --i) {
    if (!tokens[i - 1].special) return i - 1;
  }
  return 0;
}

}  // namespace

size_t strongest_key(const capture::Trace& trace, size_t layer, size_t head, size_t query) {
  const std::vector<float> row = row_of(trace, layer, head, query);
  if (const auto word = strongest_word(trace, row, query)) return *word;
  return static_cast<size_t>(std::ranges::max_element(row) - row.begin());
}

LessonFocus choose_focus(const capture::Trace& trace, const std::vector<HeadSummary>& heads_in_order,
                         std::optional<size_t> from) {
  if (heads_in_order.empty()) base::fail("lesson", "weights of at least one head", "none");
  for (const HeadSummary& head : heads_in_order) {
    for (const Link& link : head.links) {
      if (link.weight > kWorthTelling && (!from || link.query == *from))
        return {head.layer, head.head, link.query, link.key};
    }
  }
  const HeadSummary& first = heads_in_order.front();
  const size_t query = from.value_or(last_word(trace.info().tokens));
  LessonFocus focus{first.layer, first.head, query, query};
  float largest = kWorthTelling;
  for (const HeadSummary& head : heads_in_order) {
    const std::vector<float> row = row_of(trace, head.layer, head.head, query);
    const auto word = strongest_word(trace, row, query);
    if (!word || row[*word] <= largest) continue;
    largest = row[*word];
    focus = {head.layer, head.head, query, *word};
  }
  if (largest > kWorthTelling) return focus;
  const std::vector<float> row = row_of(trace, focus.layer, focus.head, query);  // of one word, or of rests alone
  focus.key = static_cast<size_t>(std::ranges::max_element(row) - row.begin());
  return focus;
}

}  // namespace clearhead::views
