// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "clearhead/kernels/bfloat16_tile.h"
#include "clearhead/kernels/row_evidence.h"
#include "clearhead/kernels/softmax.h"

namespace clearhead::kernels {

// Most keys of a tile.
constexpr size_t kTileKeys = 256;

// Floats from one row of scores to the next: an odd number of cache lines, so that rows do not evict each other.
constexpr size_t kScoreStride = kTileKeys + 16;

// Pairs from one row of weights in bfloat16 to the next, likewise.
constexpr size_t kPairStride = pair_count(kTileKeys) + 16;

// Most rows that are worked on together.
constexpr size_t kMostRows = 64;

// Keys and values of one tile, packed for tile_product; in bfloat16 the pairs take their place, packed for
// pair_product.
struct KeyTile {
  size_t first, count;                // keys [first, first + count)
  size_t value_room;                  // keys from panel to panel of the values, at least count
  const float* keys;                  // [panels of keys, head_dim, 16]
  const float* values;                // [panels of value_dim, value_room, 16]
  bool finite;                        // no value is NaN or infinite
  const Pair* key_pairs = nullptr;    // [panels of keys, pairs of head_dim, 16]
  const Pair* value_pairs = nullptr;  // [panels of value_dim, pairs of count, 16]
};

// The keys [begin, end) that a row may see by its place.
struct KeyRange {
  size_t begin, end;
};

// Changes the kernel scores of one row for the keys [first, first + scores.size()): a bias, a cap, -infinity for a key
// that may not be seen.
struct ScoreEdit {
  void (*apply)(const void* context, size_t row, size_t first, std::span<float> scores) = nullptr;
  const void* context = nullptr;
};

// Rows that are worked on together, at most kMostRows: queries of one head, or of several heads of a group, head after
// head.
struct AttentionRows {
  const float* query;  // [queries, heads, head_dim], query_stride floats from query to query
  size_t query_stride;
  size_t queries;        // rows / heads
  float query_factor;    // scale in log2 units
  const KeyRange* seen;  // [rows]
  size_t rows, head_dim, value_dim;
  ScoreEdit edit;         // none: apply is nullptr
  float* scaled_query;    // [rows, head_dim], to work in
  float* scores;          // [rows, kScoreStride], to work in; with a collector room for 16 rows more
  float* tile_output;     // [rows, value_dim up to a multiple of 16], to work in
  RowSummary* summaries;  // [rows]: what each row has seen so far
  float* output;          // [rows, value_dim up to a multiple of 16]: sums of exponentials times values so far
  EvidenceOfRows evidence;
  float* destination = nullptr;   // [rows, value_dim]: where finished rows go; nullptr: nowhere yet
  size_t destination_stride = 0;  // floats from row to row
  Pair* query_pairs = nullptr;    // [rows, pairs of head_dim], to work in; nullptr: in float
  Pair* weight_pairs = nullptr;   // [rows, kPairStride], to work in
};

// Attends to these tiles from left to right and merges them into the rows' summaries and outputs:
//
//   t_ij = (query_i query_factor) . key_j, edited     r_i = ceil(max_j t_ij)     l_i = sum_j exp2(t_ij - r_i)
//   o_i = sum_j exp2(t_ij - r_i) value_j
//
// per row and tile, by the steps of tile_product and softmax_tile, so that bits are those of doing each step for the
// whole tile. Only panels in which some row of a group sees a key are computed; a value that is not finite meets only
// the rows that see its key.
//
// In bfloat16 both products are those of pair_product: query, key, value and the exponentials are rounded, after these
// have been added up, and t_ij = (query_i . key_j) query_factor.
//
// With a destination, the rows end with the last of the tiles: attention::finish has been called on them, and what it
// leaves stands in the destination; the output may be anything then.
void attend(const AttentionRows& rows, std::span<const KeyTile> tiles);

// Ends rows as attention::finish does, and writes them to their destination.
void finish_rows(const AttentionRows& rows);

}  // namespace clearhead::kernels
