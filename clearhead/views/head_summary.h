// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "clearhead/capture/trace.h"

namespace clearhead::views {

// What a head does on a text, the first that holds (thresholds: kind_rules()).
enum class HeadKind { previous, next, self, special, punctuation, broad, content };

std::string_view name_of(HeadKind kind);

// One weight: token query looks at token key.
struct Link {
  size_t query, key;
  float weight;
};

// One head on one text. A figure without meaning (previous of a one-token text) is absent.
struct HeadSummary {
  size_t layer = 0, head = 0;
  HeadKind kind = HeadKind::content;
  std::vector<Link> links;               // strongest first, between different tokens that are not special
  double telling = 0;                    // rank among content heads: strongest link times its row's share on such tokens
  std::optional<double> entropy;         // nats, mean over rows
  std::optional<double> relative_entropy;  // entropy over log of the visible keys, mean over rows with two or more
  std::optional<double> strongest;       // mean over rows of the largest weight
  std::optional<double> previous, next, self, first, special, punctuation;  // mean mass
  std::optional<double> mean_distance;   // in tokens
};

// Rules behind HeadKind, as text for `heads --help` and the documentation.
std::string_view kind_rules();

// One summary per recorded head with weights, by layer and head.
// Throws: Error if the trace has no weights.
std::vector<HeadSummary> summarize_heads(const capture::Trace& trace, size_t links_per_head = 8);

// Content heads first, the most telling first; then the others by kind, layer and head.
std::vector<HeadSummary> in_order_of_telling(std::vector<HeadSummary> heads);

}  // namespace clearhead::views
