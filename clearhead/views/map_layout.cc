// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/map_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "clearhead/base/parallel.h"

namespace clearhead::views {
namespace {

constexpr size_t kLongestLabel = 16;
constexpr size_t kWidestCell = 10;
constexpr size_t kMostNamed = 40;  // rows of a map with a name for each column
constexpr size_t kMostLines = 36;  // lines of a map of single characters
constexpr size_t kMargin = 3;      // columns before the names and between names and cells

size_t widest_token(const std::vector<capture::TraceToken>& tokens, const Labels& labels, size_t most) {
  size_t widest = 1;
  for (const auto& token : tokens) widest = std::max(widest, display_width(labels.token(token, most)));
  return widest;
}

// Escapes read badly downwards.
bool has_escaped(const std::vector<capture::TraceToken>& tokens, const Style& style) {
  const auto foreign = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  return style.ascii && std::any_of(tokens.begin(), tokens.end(), [&](const auto& token) {
           return std::any_of(token.text.begin(), token.text.end(), foreign);
         });
}

// A cell per pair with its number or, if that is too wide, without it. False if there is no room for either.
bool fit_large_cells(MapLayout& layout, size_t n, size_t room, bool colored) {
  if (n > kMostNamed || n * 2 > room) return false;
  layout.numbers = true;
  if (n * 4 <= room) {
    layout.cell = n * 5 <= room ? 5 : 4;
  } else {
    layout.numbers = n * 3 <= room && colored;
    layout.cell = layout.numbers ? 3 : 2;
  }
  return true;
}

// Single columns or pairs of columns, pooled until they fit.
void fit_small_cells(MapLayout& layout, size_t n, size_t room, const Pen& pen) {
  layout.half_blocks = pen.colored() && !pen.style().ascii;
  layout.cell = 1;
  size_t most = std::min(room, layout.half_blocks ? 2 * kMostLines : kMostNamed);
  if (!layout.half_blocks && n > most) {
    layout.cell = 2;
    most = std::min(room / 2, kMostLines);
  }
  layout.pool = (n + most - 1) / most;
  layout.bins = (n + layout.pool - 1) / layout.pool;
}

}  // namespace

MapLayout map_layout(const AttentionMap& map, const Labels& labels) {
  const auto& tokens = map.tokens;
  const size_t n = tokens.size();
  const bool colored = labels.pen().colored();
  MapLayout layout;
  layout.bins = n;
  layout.label = widest_token(tokens, labels, kLongestLabel);
  const size_t room = labels.width() - layout.label - kMargin;
  const size_t widest = std::max<size_t>(widest_token(tokens, labels, kWidestCell), 3) + (colored ? 2 : 3);
  if (n * widest <= room) {
    layout.cell = widest;
    layout.numbers = true;
    layout.names = ColumnNames::horizontal;
    return layout;
  }
  if (!has_escaped(tokens, labels.pen().style()) && fit_large_cells(layout, n, room, colored)) {
    layout.names = ColumnNames::vertical;
    return layout;
  }
  const size_t digits = fmt::formatted_size("{}", map.places.back()) + 1;
  layout.names = ColumnNames::ruler;
  layout.label += digits;
  if (!fit_large_cells(layout, n, room - digits, colored)) fit_small_cells(layout, n, room - digits, labels.pen());
  return layout;
}

std::vector<float> pooled_by_maximum(const capture::WeightSource& weights, size_t pool) {
  const size_t n = weights.key_len(), bins = (n + pool - 1) / pool;
  std::vector<float> pooled(bins * bins, 0.0F);
  base::parallel_for(bins, [&](size_t bin) {
    const size_t first = bin * pool, count = std::min(pool, n - first);
    std::vector<float> row(n);
    for (size_t query = first; query < first + count; ++query) {
      weights.row(0, 0, query, row);
      for (size_t key = 0; key < n; ++key) {
        float& cell = pooled[bin * bins + key / pool];
        cell = std::max(cell, row[key]);
      }
    }
  });
  return pooled;
}

}  // namespace clearhead::views
