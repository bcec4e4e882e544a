// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/attention_tile.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/kernels/attention_tile.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/merge-inl.h"
#include "clearhead/kernels/softmax-inl.h"
#include "clearhead/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

// Rows that share the keys they compute where ranges differ from row to row (the causal diagonal).
constexpr size_t kGroupRows = 12;

// Keys [begin, end) of the tile.
struct TileRange {
  size_t begin, end;

  bool operator==(const TileRange&) const = default;
  bool empty() const { return begin >= end; }
  size_t first_panel() const { return begin / kPanelWidth; }
  size_t end_panel() const { return panel_count(end); }
};

HWY_INLINE TileRange range_in_tile(const KeyRange& seen, const KeyTile& tile) {
  const size_t end = tile.first + tile.count;
  return {std::clamp(seen.begin, tile.first, end) - tile.first, std::clamp(seen.end, tile.first, end) - tile.first};
}

// The keys that some of the rows [row, end) sees.
HWY_INLINE TileRange range_of_rows(const AttentionRows& a, const KeyTile& tile, size_t row, size_t end) {
  TileRange all{tile.count, 0};
  for (; row < end; ++row) {
    const TileRange one = range_in_tile(a.seen[row], tile);
    if (!one.empty()) all = {std::min(all.begin, one.begin), std::max(all.end, one.end)};
  }
  return all;
}

// Not inline: its tiles are many instructions.
HWY_NOINLINE void multiply(const TileProduct& product) { tile_product_inline(product); }

HWY_INLINE void score(const AttentionRows& a, const KeyTile& tile, size_t row, size_t rows, TileRange range) {
  const size_t first = range.first_panel(), panel_stride = a.head_dim * kPanelWidth;
  multiply({.left = a.scaled_query + row * a.head_dim,
            .left_stride = a.head_dim,
            .panels = tile.keys + first * panel_stride,
            .panel_stride = panel_stride,
            .output = a.scores + row * kTileKeys + first * kPanelWidth,
            .output_stride = kTileKeys,
            .rows = rows,
            .depth = a.head_dim,
            .num_panels = range.end_panel() - first});
}

// output = exponentials times values, for some rows and keys.
HWY_INLINE void weigh(const AttentionRows& a, const KeyTile& tile, size_t row, size_t rows, TileRange keys,
                      bool accumulate) {
  const size_t panels = panel_count(a.value_dim);
  multiply({.left = a.scores + row * kTileKeys + keys.begin,
            .left_stride = kTileKeys,
            .panels = tile.values + keys.begin * kPanelWidth,
            .panel_stride = tile.count * kPanelWidth,
            .output = a.tile_output + row * panels * kPanelWidth,
            .output_stride = panels * kPanelWidth,
            .rows = rows,
            .depth = keys.end - keys.begin,
            .num_panels = panels,
            .accumulate = accumulate});
}

// Scores of one row become exponentials, over the panels of range; its own keys may be fewer.
HWY_INLINE RowSummary row_exponentials(const AttentionRows& a, const KeyTile& tile, size_t row, TileRange range) {
  float* scores = a.scores + row * kTileKeys;
  const size_t begin = range.first_panel() * kPanelWidth, end = range.end_panel() * kPanelWidth;
  TileRange own = range_in_tile(a.seen[row], tile);
  if (own.empty()) {
    std::fill(scores + begin, scores + end, 0.0f);
    return {kNoReference, 0.0f};
  }
  if (own.begin > begin) std::fill(scores + begin, scores + own.begin, -kInfinity);
  if (own.end < end) std::fill(scores + own.end, scores + end, -kInfinity);
  if (a.edit.apply != nullptr) {
    a.edit.apply(a.edit.context, row, tile.first + own.begin, {scores + own.begin, own.end - own.begin});
  }
  return exponentials_of_tile(scores + begin, end - begin);
}

// The same and the row's output, where some value is not finite: only keys that the row sees are multiplied.
HWY_INLINE RowSummary weigh_carefully(const AttentionRows& a, const KeyTile& tile, size_t row, TileRange range) {
  const TileRange own = range_in_tile(a.seen[row], tile);
  const float* scores = a.scores + row * kTileKeys;
  if (!own.empty() && a.edit.apply != nullptr) {
    a.edit.apply(a.edit.context, row, tile.first + own.begin,
                 {a.scores + row * kTileKeys + own.begin, own.end - own.begin});
  }
  bool visible[kTileKeys] = {};
  for (size_t key = own.begin; key < own.end; ++key) visible[key] = !(scores[key] == -kInfinity);
  AttentionRows edited = a;
  edited.edit = {};
  const RowSummary summary = row_exponentials(edited, tile, row, range);
  const size_t room = panel_count(a.value_dim) * kPanelWidth;
  std::fill_n(a.tile_output + row * room, room, 0.0f);
  for (size_t key = own.begin; key < own.end; ++key) {
    if (visible[key]) weigh(a, tile, row, 1, {key, key + 1}, true);
  }
  return summary;
}

HWY_INLINE void merge_row(const AttentionRows& a, size_t row, const RowSummary& summary) {
  const FloatTag tag;
  const size_t room = panel_count(a.value_dim) * kPanelWidth;
  float* tile_output = a.tile_output + row * room;
  for (size_t i = 0; i < room; i += kLanes) {  // + 0: -0 must not tell a skipped key from one that gave 0
    hn::StoreU(hn::Add(hn::LoadU(tag, tile_output + i), hn::Zero(tag)), tag, tile_output + i);
  }
  merge_inline(a.summaries[row], a.output + row * room, summary, tile_output, room);
}

HWY_INLINE void attend_group(const AttentionRows& a, const KeyTile& tile, size_t row, size_t end, TileRange range) {
  score(a, tile, row, end - row, range);
  RowSummary summaries[kMostRows];
  for (size_t i = row; i < end; ++i) {
    summaries[i - row] = tile.finite ? row_exponentials(a, tile, i, range) : weigh_carefully(a, tile, i, range);
  }
  if (tile.finite) weigh(a, tile, row, end - row, range, false);
  for (size_t i = row; i < end; ++i) merge_row(a, i, summaries[i - row]);
}

HWY_INLINE void scale_query(const AttentionRows& a) {
  const FloatTag tag;
  const FloatVec factor = hn::Set(tag, a.query_factor);
  for (size_t row = 0; row < a.rows; ++row) {
    const float* query = a.query + row % a.queries * a.query_stride + row / a.queries * a.head_dim;
    float* scaled = a.scaled_query + row * a.head_dim;
    size_t i = 0;
    for (; i + kLanes <= a.head_dim; i += kLanes)
      hn::StoreU(hn::Mul(hn::LoadU(tag, query + i), factor), tag, scaled + i);
    for (; i < a.head_dim; ++i) scaled[i] = query[i] * a.query_factor;
  }
}

void attend(const AttentionRows& a, std::span<const KeyTile> tiles) {
  scale_query(a);
  std::fill_n(a.summaries, a.rows, RowSummary{kNoReference, 0.0f});
  for (const KeyTile& tile : tiles) {
    for (size_t row = 0; row < a.rows;) {
      size_t end = std::min(a.rows, row + kGroupRows);
      const TileRange range = range_of_rows(a, tile, row, end);
      for (size_t next = end; next < a.rows; end = next) {
        next = std::min(a.rows, end + kGroupRows);
        if (!(range_of_rows(a, tile, end, next) == range)) break;
      }
      if (!range.empty()) attend_group(a, tile, row, end, range);
      row = end;
    }
  }
}

void finish_rows(const AttentionRows& a, float* destination, size_t stride) {
  const size_t room = panel_count(a.value_dim) * kPanelWidth;
  for (size_t row = 0; row < a.rows; ++row) {
    finish_inline(a.summaries[row], a.output + row * room, a.value_dim, destination + row * stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::kernels {

HWY_EXPORT(attend);
HWY_EXPORT(finish_rows);

void attend(const AttentionRows& rows, std::span<const KeyTile> tiles) { HWY_DYNAMIC_DISPATCH(attend)(rows, tiles); }

void finish_rows(const AttentionRows& rows, float* destination, size_t stride) {
  HWY_DYNAMIC_DISPATCH(finish_rows)(rows, destination, stride);
}

}  // namespace clearhead::kernels
#endif
