// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/attention_tile.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "clearhead/kernels/bfloat16_instruction.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/kernels/attention_tile.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/merge-inl.h"
#include "clearhead/kernels/row_collect-inl.h"
#include "clearhead/kernels/row_evidence-inl.h"
#include "clearhead/kernels/row_exponentials-inl.h"
#include "clearhead/kernels/row_lanes-inl.h"
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

inline void score_pairs(const AttentionRows& a, const KeyTile& tile, size_t row, size_t rows, TileRange range,
                        float* maxima) {
  const size_t first = range.first_panel(), pairs = pair_count(a.head_dim);
  pair_product({.left = a.query_pairs + row * pairs,
                .left_stride = pairs,
                .panels = tile.key_pairs + first * pairs * kPanelWidth,
                .panel_stride = pairs * kPanelWidth,
                .output = a.scores + row * kScoreStride + first * kPanelWidth,
                .output_stride = kScoreStride,
                .rows = rows,
                .pairs = pairs,
                .num_panels = range.end_panel() - first,
                .factor = a.query_factor,
                .maxima = maxima});
}

// The keys of whole pairs: those beside the range weigh 0.
inline PairProduct product_of_weights(const AttentionRows& a, const KeyTile& tile, size_t row, TileRange keys,
                                      float* output) {
  const size_t panels = panel_count(a.value_dim), first = keys.begin / 2;
  return {.left = a.weight_pairs + row * kPairStride + first,
          .left_stride = kPairStride,
          .panels = tile.value_pairs + first * kPanelWidth,
          .panel_stride = pair_count(tile.count) * kPanelWidth,
          .output = output,
          .output_stride = panels * kPanelWidth,
          .rows = 1,
          .pairs = pair_count(keys.end) - first,
          .num_panels = panels};
}

HWY_INLINE void score(const AttentionRows& a, const KeyTile& tile, size_t row, size_t rows, TileRange range,
                      float* maxima) {
  const size_t first = range.first_panel(), panel_stride = a.head_dim * kPanelWidth;
  if (a.query_pairs != nullptr) return score_pairs(a, tile, row, rows, range, maxima);
  const TileProduct product{.left = a.scaled_query + row * a.head_dim,
                            .left_stride = a.head_dim,
                            .panels = tile.keys + first * panel_stride,
                            .panel_stride = panel_stride,
                            .output = a.scores + row * kScoreStride + first * kPanelWidth,
                            .output_stride = kScoreStride,
                            .rows = rows,
                            .depth = a.head_dim,
                            .num_panels = range.end_panel() - first,
                            .maxima = maxima};
  multiply(product);
}

// Where products with values go.
struct Weighed {
  float* output;
  size_t stride;                   // floats from row to row
  const float* factors = nullptr;  // what rows are multiplied by at last, or nullptr
};

// output = exponentials times values, for some rows and keys.
HWY_INLINE void weigh(const AttentionRows& a, const KeyTile& tile, size_t row, size_t rows, TileRange keys,
                      const Weighed& to) {
  const size_t panels = panel_count(a.value_dim);
  if (a.weight_pairs != nullptr) {
    PairProduct product = product_of_weights(a, tile, row, keys, to.output);
    product.rows = rows;
    return pair_product(product);
  }
  const TileProduct product{.left = a.scores + row * kScoreStride + keys.begin,
                            .left_stride = kScoreStride,
                            .panels = tile.values + keys.begin * kPanelWidth,
                            .panel_stride = tile.value_room * kPanelWidth,
                            .output = to.output,
                            .output_stride = to.stride,
                            .rows = rows,
                            .depth = keys.end - keys.begin,
                            .num_panels = panels,
                            .add_zero = true,  // -0 must not tell a skipped key from one that gave 0
                            .row_factors = to.factors};
  multiply(product);
}

// Gives -infinity to the keys of the row that stand in the panels of range but may not be seen, and edits the others.
HWY_INLINE void edit_row(const AttentionRows& a, const KeyTile& tile, size_t row, TileRange range) {
  float* scores = a.scores + row * kScoreStride;
  const size_t begin = range.first_panel() * kPanelWidth, end = range.end_panel() * kPanelWidth;
  const TileRange own = range_in_tile(a.seen[row], tile);
  if (own.empty()) return std::fill(scores + begin, scores + end, -kInfinity);
  if (own.begin > begin) std::fill(scores + begin, scores + own.begin, -kInfinity);
  if (own.end < end) std::fill(scores + own.end, scores + end, -kInfinity);
  if (a.edit.apply == nullptr) return;
  a.edit.apply(a.edit.context, row, tile.first + own.begin, {scores + own.begin, own.end - own.begin});
}

// The same in bfloat16 where the machine has its instructions and nobody asks for the powers: rounded at once, with the
// same bits. A NaN makes its row NaN by itself.
inline void exponentials_in_pairs(const AttentionRows& a, size_t row, size_t rows, size_t begin, size_t end,
                                  const float* maxima, RowSummary* summaries) {
  RowLanes lanes(rows);
  alignas(64) float largest[kVirtualLanes], references[kVirtualLanes], sums[kVirtualLanes], rounded[kVirtualLanes];
  for (size_t i = 0; i < rows; ++i) {
    for (size_t r = 0; r < kRegisters; ++r) {
      lanes.set(i, r, hn::LoadU(FloatTag(), maxima + i * kVirtualLanes + r * kLanes));
    }
  }
  lanes.fold([](FloatVec x, FloatVec y) HWY_ATTR { return hn::Max(x, y); }, largest);
  find_references(largest, references);
  instruction::raise_and_round({a.scores + row * kScoreStride, kScoreStride, rows, begin, end, references,
                                a.weight_pairs + row * kPairStride, kPairStride, sums, rounded});
  for (size_t i = 0; i < rows; ++i) {
    summaries[i] = sums[i] == 0 ? RowSummary{kNoReference, 0.0f} : RowSummary{references[i], sums[i], rounded[i]};
    if (sums[i] != sums[i]) summaries[i] = {0.0f, canonical(sums[i]), canonical(sums[i])};
  }
}

// output of one row where some value is not finite: only keys that the row sees are multiplied.
HWY_INLINE void weigh_carefully(const AttentionRows& a, const KeyTile& tile, size_t row, const uint8_t* visible,
                                float* output) {
  if (a.weight_pairs != nullptr) {
    return pair_product_of_visible(product_of_weights(a, tile, row, {0, tile.count}, output), visible);
  }
  std::fill_n(output, panel_count(a.value_dim) * kPanelWidth, 0.0f);
  for (size_t key = 0; key < tile.count; ++key) {
    if (visible[key] == 0) continue;
    const TileProduct product{.left = a.scores + row * kScoreStride + key,
                              .left_stride = kScoreStride,
                              .panels = tile.values + key * kPanelWidth,
                              .panel_stride = tile.value_room * kPanelWidth,
                              .output = output,
                              .output_stride = panel_count(a.value_dim) * kPanelWidth,
                              .rows = 1,
                              .depth = 1,
                              .num_panels = panel_count(a.value_dim),
                              .accumulate = true,
                              .add_zero = true};
    multiply(product);
  }
}

// Where results of a tile go, row by row.
struct Found {
  float* maxima;  // [rows, 16]
  RowSummary* summaries;
  RowEvidence* evidence;
  float* output;  // [rows, value_dim up to whole panels]
};

// What is kept of rows beside their summaries.
enum class Watch { nothing, evidence, everything };

// Exponentials of at most 16 rows, and, where some value is not finite, their outputs.
template <Watch kWatch>
HWY_INLINE void exponentials(const AttentionRows& a, const KeyTile& tile, size_t row, size_t rows, TileRange range,
                             bool plain, const Found& found) {
  uint8_t visible[kVirtualLanes][kTileKeys];
  const size_t begin = range.first_panel() * kPanelWidth, end = range.end_panel() * kPanelWidth;
  for (size_t i = 0; !plain && i < rows; ++i) edit_row(a, tile, row + i, range);
  for (size_t i = 0; !tile.finite && i < rows; ++i) {
    const float* row_scores = a.scores + (row + i) * kScoreStride;
    std::fill_n(visible[i], kTileKeys, uint8_t{0});
    for (size_t key = range.begin; key < range.end; ++key) visible[i][key] = row_scores[key] == -kInfinity ? 0 : 1;
  }
  float* scores = a.scores + row * kScoreStride + begin;
  if (!plain) find_maxima(scores, rows, end - begin, found.maxima);
  const bool at_once = kWatch == Watch::nothing && a.weight_pairs != nullptr && has_pair_instruction();
  if (at_once) {
    exponentials_in_pairs(a, row, rows, begin, end, found.maxima, found.summaries);
  } else if constexpr (kWatch == Watch::nothing) {
    exponentials_of_rows(scores, rows, end - begin, found.maxima, found.summaries, NoEvidence());
  } else {
    using Evidence = std::conditional_t<kWatch == Watch::evidence, KeptEvidence, CollectedEvidence>;
    const Evidence evidence(a.evidence, {row, rows}, tile.first + begin, found.evidence);
    exponentials_of_rows(scores, rows, end - begin, found.maxima, found.summaries, evidence);
  }
  if (a.weight_pairs != nullptr && !at_once) {
    float sums[kVirtualLanes];
    round_powers(a.scores + row * kScoreStride, kScoreStride, rows, begin, end, a.weight_pairs + row * kPairStride,
                 kPairStride, sums);
    for (size_t i = 0; i < rows; ++i) found.summaries[i].rounded_sum = sums[i];
  }
  const size_t room = panel_count(a.value_dim) * kPanelWidth;
  for (size_t i = 0; !tile.finite && i < rows; ++i) {
    weigh_carefully(a, tile, row + i, visible[i], found.output + i * room);
  }
}

// Ends a row whose sums of powers times values stand in source.
HWY_INLINE void finish_row(const AttentionRows& a, size_t row, const float* source) {
  finish_inline(a.summaries[row], source, a.value_dim, a.destination + row * a.destination_stride);
}

// Products of rows that see no other tile, finished as they are written.
HWY_INLINE void weigh_and_finish(const AttentionRows& a, const KeyTile& tile, size_t row, size_t end, TileRange range) {
  alignas(64) float factors[kMostRows];
  for (size_t i = row; i < end; ++i) {  // a row that sees nothing has sums of 0
    const RowSummary& summary = a.summaries[i];
    factors[i - row] = summary.reference == kNoReference ? 0.0f : 1.0f / summary.sum;
  }
  weigh(a, tile, row, end - row, range, {a.destination + row * a.destination_stride, a.destination_stride, factors});
}

// One tile for rows that share the keys they compute; last: the rows see no further tile, and end.
template <Watch kWatch>
HWY_INLINE void attend_group(const AttentionRows& a, const KeyTile& tile, size_t row, size_t end, TileRange range,
                             bool last) {
  const size_t room = panel_count(a.value_dim) * kPanelWidth;
  // Where every row sees the same whole panels and nothing is edited, products are scores, and their largest are found
  // while they are computed.
  const bool plain =
      a.edit.apply == nullptr && range.begin % kPanelWidth == 0 && range.end % kPanelWidth == 0 &&
      std::all_of(a.seen + row, a.seen + end, [&](const KeyRange& seen) { return range_in_tile(seen, tile) == range; });
  alignas(64) float maxima[kMostRows * kVirtualLanes];
  if (plain) std::fill_n(maxima, (end - row) * kVirtualLanes, -kInfinity);
  score(a, tile, row, end - row, range, plain ? maxima : nullptr);
  // The first tile that rows see is written to its place at once.
  const bool first = std::all_of(a.summaries + row, a.summaries + end,
                                 [](const RowSummary& one) { return one.reference == kNoReference; });
  float* output = (first ? a.output : a.tile_output) + row * room;
  constexpr bool kKept = kWatch != Watch::nothing;
  RowSummary summaries[kMostRows];
  RowEvidence evidence[kKept ? kMostRows : 1];
  const Found found = first ? Found{maxima, a.summaries + row, kKept ? a.evidence.rows + row : nullptr, output}
                            : Found{maxima, summaries, evidence, output};
  for (size_t i = row; i < end; i += kVirtualLanes) {
    const size_t at = i - row;
    exponentials<kWatch>(
        a, tile, i, std::min(kVirtualLanes, end - i), range, plain,
        {maxima + at * kVirtualLanes, found.summaries + at, kKept ? found.evidence + at : nullptr, output + at * room});
  }
  if (first && last && tile.finite && a.weight_pairs == nullptr && room == a.value_dim) {
    return weigh_and_finish(a, tile, row, end, range);
  }
  if (tile.finite) weigh(a, tile, row, end - row, range, {output, room});
  for (size_t i = row; i < end; ++i, output += room) {
    if (!first) {
      const RowSummary& summary = summaries[i - row];
      if constexpr (kKept) merge_evidence(a.evidence.rows[i], a.summaries[i], evidence[i - row], summary);
      merge_inline(a.summaries[i], a.output + i * room, summary, output, room);
    }
    if (last) finish_row(a, i, a.output + i * room);
  }
}

HWY_INLINE void prepare_query(const AttentionRows& a) {
  const FloatTag tag;
  const FloatVec factor = hn::Set(tag, a.query_factor);
  const size_t pairs = pair_count(a.head_dim);
  for (size_t row = 0; row < a.rows; ++row) {
    const size_t head = a.queries == a.rows ? 0 : row / a.queries;  // a division is slower than the row
    const float* query = a.query + (row - head * a.queries) * a.query_stride + head * a.head_dim;
    // The next head of the query is what is attended to next; rows of one head stand far apart.
    for (size_t i = 0; i < a.head_dim; i += kPanelWidth) __builtin_prefetch(query + a.head_dim + i, 0, 2);
    if (a.query_pairs != nullptr) {
      round_to_pairs(query, 0, 1, a.head_dim, a.query_pairs + row * pairs, pairs);
      continue;
    }
    float* scaled = a.scaled_query + row * a.head_dim;
    size_t i = 0;
    for (; i + kLanes <= a.head_dim; i += kLanes)
      hn::StoreU(hn::Mul(hn::LoadU(tag, query + i), factor), tag, scaled + i);
    for (; i < a.head_dim; ++i) scaled[i] = query[i] * a.query_factor;
  }
}

void finish_rows(const AttentionRows& a) {
  for (size_t row = 0; row < a.rows; ++row) finish_row(a, row, a.output + row * panel_count(a.value_dim) * kPanelWidth);
}

// All groups of rows that see something of a tile; last: the rows end with it.
template <Watch kWatch>
HWY_INLINE void attend_tile(const AttentionRows& a, const KeyTile& tile, bool last) {
  for (size_t row = 0; row < a.rows;) {
    size_t end = std::min(a.rows, row + kGroupRows);
    const TileRange range = range_of_rows(a, tile, row, end);
    for (size_t next = end; next < a.rows; end = next) {
      next = std::min(a.rows, end + kGroupRows);
      if (!(range_of_rows(a, tile, end, next) == range)) break;
    }
    if (!range.empty()) {
      attend_group<kWatch>(a, tile, row, end, range, last);
    } else if (last) {
      for (size_t i = row; i < end; ++i) finish_row(a, i, a.output + i * panel_count(a.value_dim) * kPanelWidth);
    }
    row = end;
  }
}

template <Watch kWatch>
void attend_tiles(const AttentionRows& a, std::span<const KeyTile> tiles) {
  prepare_query(a);
  std::fill_n(a.summaries, a.rows, RowSummary{kNoReference, 0.0f});
  for (size_t row = 0; kWatch != Watch::nothing && row < a.rows; ++row) a.evidence.rows[row].largest = -kInfinity;
  for (const KeyTile& tile : tiles) attend_tile<kWatch>(a, tile, a.destination != nullptr && &tile == &tiles.back());
  if (a.destination != nullptr && tiles.empty()) HWY_NAMESPACE::finish_rows(a);
}

void attend(const AttentionRows& a, std::span<const KeyTile> tiles) {
  if (a.evidence.rows == nullptr) return attend_tiles<Watch::nothing>(a, tiles);
  if (a.evidence.collector == nullptr) return attend_tiles<Watch::evidence>(a, tiles);
  attend_tiles<Watch::everything>(a, tiles);
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::kernels {

HWY_EXPORT(attend);
HWY_EXPORT(finish_rows);

void attend(const AttentionRows& rows, std::span<const KeyTile> tiles) { HWY_DYNAMIC_DISPATCH(attend)(rows, tiles); }

void finish_rows(const AttentionRows& rows) { HWY_DYNAMIC_DISPATCH(finish_rows)(rows); }

}  // namespace clearhead::kernels
#endif
