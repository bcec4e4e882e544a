// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clearhead/capture/trace.h"
#include "clearhead/views/head_summary.h"
#include "clearhead/views/terminal.h"

namespace clearhead::views {

// Tokens (or words) and the weights between them, as one head has them.
struct AttentionMap {
  size_t layer = 0, head = 0;
  std::vector<capture::TraceToken> tokens;  // [n]
  std::vector<float> weights;               // [n, n], row-major, rows attend
  double hidden_mass = 0;                   // mean mass per row that hidden special tokens took
};

struct MapOptions {
  bool words = false;                // join pieces: sum over attended, mean over attending pieces
  bool hide_special = false;         // without renormalising; hidden_mass says what is not shown
  size_t top = 3;                    // keys named per token
  std::optional<size_t> from;        // only this row (index of a token of the trace)
};

// Throws: Error if the head's weights were not recorded.
AttentionMap attention_map(const capture::Trace& trace, size_t layer, size_t head, const MapOptions& options);

// The map in colour, fitting the width, and per token where it looks.
std::string draw_map(const AttentionMap& map, const MapOptions& options, const Style& style);

// The whole model in one screen: the most telling heads first, each with what it does in words.
std::string draw_overview(const capture::Trace& trace, const std::vector<HeadSummary>& heads_in_order, const MapOptions& options,
                          const Style& style);

// Where one token looks, in each head that is telling for it. heads_in_order as for draw_overview.
std::string draw_row(const capture::Trace& trace, size_t query, const std::vector<HeadSummary>& heads_in_order, const MapOptions& options,
                     const Style& style);

// One row per head: kind and figures.
std::string draw_head_table(const capture::Trace& trace, const std::vector<HeadSummary>& heads, const Style& style);

// Pieces, ids, byte offsets.
std::string draw_tokens(const std::vector<capture::TraceToken>& tokens, const Style& style);

}  // namespace clearhead::views
