// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "clearhead/capture/trace.h"

namespace clearhead::views {

// What a head does on a text, the first that holds (thresholds: kind_rules()).
enum class HeadKind { previous, next, self, special, first, punctuation, broad, content };
inline constexpr size_t kHeadKinds = 8;

// Thresholds of the kinds, on means over rows.
// Source: K. Clark et al., What Does BERT Look At?, 2019, for position and mass.
inline constexpr double kPositionThreshold = 0.5;  // weight on the previous, next or same token
inline constexpr double kMassThreshold = 0.6;      // mass on special tokens, on the first token or on punctuation
inline constexpr double kBroadThreshold = 0.8;     // entropy over log of the number of visible keys

// "previous", ... as in JSON.
std::string_view name_of(HeadKind kind);

// One weight: token query looks at token key.
struct Link {
  size_t query, key;
  float weight;
};

// Tokens on which a head rests that finds nothing: special ones, and the first of a text that is read from left to
// right and begins without one. Shape: [seq]. Source: G. Xiao et al., Efficient Streaming Language Models with
// Attention Sinks, 2023.
std::vector<uint8_t> resting_tokens(const capture::TraceInfo& info);

// One head on one text. Means are over the rows that see a key at all; previous, next, self and first over those that
// see that key. A figure without meaning (previous of a one-token text, special without special tokens) is absent. A
// key counts as visible to a query if any recorded head of the layer gives it weight.
struct HeadSummary {
  size_t layer = 0, head = 0;
  HeadKind kind = HeadKind::content;
  // Between different tokens on which heads do not rest, largest strength first, ties by query and key. The strength of
  // a link is its weight times the share of its row's mass that is on such tokens.
  std::vector<Link> links;
  double telling = 0;                      // rank among content heads: strength of the first link
  std::optional<double> entropy;           // nats
  std::optional<double> relative_entropy;  // entropy over log of the visible keys, mean over rows with two or more
  std::optional<double> strongest;         // largest weight of a row
  std::optional<double> previous, next, self, first, special, punctuation;  // mass
  std::optional<double> mean_distance;                                      // in tokens
};

// A link with its strength, as HeadSummary::links ranks them.
struct RankedLink {
  Link link;
  double strength = 0;
};

// The strongest link of one row; nothing for a token on which heads rest or a row without links. Shapes: row [seq],
// resting [seq].
std::optional<RankedLink> strongest_link(std::span<const float> row, size_t query, std::span<const uint8_t> resting);

// Rules behind HeadKind with their thresholds, a line each, as text for `heads --help` and the documentation.
std::string_view kind_rules();

// One summary per recorded head with weights, by layer and head, from rows that are rebuilt a few at a time.
// Throws: Error if the trace has no weights.
std::vector<HeadSummary> summarize_heads(const capture::Trace& trace, size_t links_per_head = 8);

// One head's summary. Throws: Error if its weights were not recorded.
HeadSummary summarize_head(const capture::Trace& trace, size_t layer, size_t head, size_t links_per_head = 8);

// Content heads first, the most telling first; then the others by kind, layer and head.
std::vector<HeadSummary> in_order_of_telling(std::vector<HeadSummary> heads);

}  // namespace clearhead::views
