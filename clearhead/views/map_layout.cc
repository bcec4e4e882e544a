// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/map_layout.h"

#include <fmt/format.h>

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

// Single columns or pairs of columns, numbered, pooled until they fit.
void fit_small_cells(MapLayout& layout, size_t n, size_t room, const Pen& pen) {
  layout.half_blocks = pen.colored() && !pen.style().ascii;
  layout.names = ColumnNames::ruler;
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

MapLayout map_layout(const std::vector<capture::TraceToken>& tokens, const Labels& labels) {
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
  } else if (n <= kMostNamed && n * 4 <= room) {
    layout.cell = n * 5 <= room ? 5 : 4;
    layout.numbers = true;
    layout.names = ColumnNames::vertical;
  } else if (n <= kMostNamed && n * 2 <= room) {
    layout.cell = n * 3 <= room && colored ? 3 : 2;
    layout.numbers = layout.cell == 3;
    layout.names = ColumnNames::vertical;
  } else {
    const size_t digits = fmt::formatted_size("{}", n) + 1;
    layout.label += digits;
    fit_small_cells(layout, n, room - std::min(room - 1, digits), labels.pen());
  }
  return layout;
}

std::vector<float> pooled_by_maximum(std::span<const float> weights, size_t n, size_t pool) {
  const size_t bins = (n + pool - 1) / pool;
  std::vector<float> pooled(bins * bins, 0.0F);
  for (size_t query = 0; query < n; ++query) {
    for (size_t key = 0; key < n; ++key) {
      float& bin = pooled[query / pool * bins + key / pool];
      bin = std::max(bin, weights[query * n + key]);
    }
  }
  return pooled;
}

}  // namespace clearhead::views
