// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "clearhead/capture/trace.h"
#include "clearhead/views/head_summary.h"
#include "clearhead/views/shown_weights.h"
#include "clearhead/views/terminal.h"

namespace clearhead::views {

// Tokens (or words) and the weights between them, as one head has them.
struct AttentionMap {
  std::string model;
  size_t layer = 0, head = 0;
  HeadKind kind = HeadKind::content;
  std::vector<capture::TraceToken> tokens;  // [n]
  std::vector<size_t> places;               // [n]: index in the trace of each token (of a word, of its first)
  ShownWeights weights;                     // [1, 1, n, n], rows attend; read from the trace, which must outlive it
  double hidden_mass = 0;                   // mean mass per row that hidden special tokens took
  std::optional<size_t> from;               // row of the token that MapOptions::from names

  std::vector<float> row(size_t query) const { return row_of(*weights, query); }  // [n]
};

struct MapOptions {
  bool words = false;          // join pieces: sum over attended, mean over attending pieces
  bool hide_special = false;   // without renormalising; hidden_mass says what is not shown
  size_t top = 3;              // keys named per token
  std::optional<size_t> from;  // only this row (index of a token of the trace)
};

// The trace with its tokens joined to words and its weights with them: what draw_overview, draw_row, draw_head_table,
// summarize_heads and attend_json show when words are asked for (attention_map joins by itself). It has weights only,
// joined when they are looked at, from trace, which must outlive it. A word of several pieces has id -1.
// Throws: Error if the trace has no weights.
capture::Trace in_words(const capture::Trace& trace);
capture::Trace in_words(capture::Trace&& trace) = delete;

// Throws: Error if the head's weights were not recorded; Error (usage) if from is no token or is hidden.
AttentionMap attention_map(const capture::Trace& trace, size_t layer, size_t head, const MapOptions& options);
AttentionMap attention_map(capture::Trace&& trace, size_t layer, size_t head, const MapOptions& options) = delete;

// The map in colour, fitting the width, and per token where it looks; with map.from that row alone. Long texts are
// pooled by maximum, so that the picture stays within a screen.
std::string draw_map(const AttentionMap& map, const MapOptions& options, const Style& style);

// The whole model in one screen: the most telling heads first, each with what it does in words. Of options,
// hide_special leaves special tokens out of what is named, and words adds the rule by which in_words joined.
std::string draw_overview(const capture::Trace& trace, const std::vector<HeadSummary>& heads_in_order,
                          const MapOptions& options, const Style& style);

// Where one token looks, in each head that is telling for it. heads_in_order as for draw_overview.
// Throws: Error (usage) if there is no such token.
std::string draw_row(const capture::Trace& trace, size_t query, const std::vector<HeadSummary>& heads_in_order,
                     const MapOptions& options, const Style& style);

// One row per head: kind and figures.
std::string draw_head_table(const capture::Trace& trace, const std::vector<HeadSummary>& heads, const Style& style);

// Pieces, ids, byte offsets.
std::string draw_tokens(const std::vector<capture::TraceToken>& tokens, const Style& style);

}  // namespace clearhead::views
