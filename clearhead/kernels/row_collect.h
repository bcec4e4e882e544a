// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "clearhead/kernels/attention_tile.h"
#include "clearhead/kernels/softmax.h"

namespace clearhead::kernels {

// Most keys that a row names as its strongest.
constexpr size_t kMostTop = 64;

// Floats from one column of rows to the next: rows that are worked on together, and room for a group of 16 that begins
// at any of them.
constexpr size_t kRowStride = kMostRows + 16;

// The keys with the largest scores. Candidates are all keys that may still be among them, in rising order.
struct TopOfRows {
  size_t count = 0;           // how many keys a row names, at most kMostTop; 0: not collected
  float* scores = nullptr;    // [rows, kTopRoom]: kernel scores of the candidates
  uint32_t* keys = nullptr;   // [rows, kTopRoom]
  uint32_t* found = nullptr;  // [rows]: how many candidates
  float* bound = nullptr;     // [rows]: count candidates have at least this score
  float* largest = nullptr;   // [16, kRowStride]: of all largest scores of virtual lanes, the 16 largest, falling
};

// Candidates that wait for others; more are thinned out before the next tile brings its own. Vectors are stored
// whole.
constexpr size_t kTopWaiting = 128, kTopRoom = kTopWaiting + kTileKeys + 16;

// A key whose score is gathered, and the slot that it goes to.
struct GatheredKey {
  size_t key;
  size_t slot;
};

// The key so far from each row's own position (0: itself, -1: the previous one), and its slot.
struct GatheredDistance {
  int64_t distance;
  size_t slot;
};

// Groups of keys: scores of few keys are gathered, weights of many are added up.
struct GroupsOfRows {
  std::span<const GatheredKey> keys = {};  // in rising order
  std::span<const GatheredDistance> distances = {};
  size_t slots = 0;
  float* scores = nullptr;         // [slots, kRowStride]: kernel scores, -infinity where not seen
  size_t columns = 0;              // groups of many keys
  const float* members = nullptr;  // [columns, member_stride]: 1 for a key of the group, else 0; whole panels of keys
  size_t member_stride = 0;
  float* sums = nullptr;        // [columns, kRowStride]: sums of exp2(t - reference)
  float* references = nullptr;  // [kRowStride]
};

// Keys [begin, end) of one tile that lie in one bin.
struct BinPart {
  size_t begin, end, bin, tile;
};

// Key bins that cut rows of weights. A bin has one part in each tile that it touches.
struct OverviewOfRows {
  std::span<const BinPart> parts = {};       // in rising order; none: not collected
  std::span<const size_t> first_parts = {};  // [tiles + 1]: where the parts of each tile begin
  float* sums = nullptr;                     // [parts, kRowStride]: sums of exp2(t - reference of the tile)
  float* maxima = nullptr;                   // [parts, kRowStride]: the largest of them
  float* references = nullptr;               // [tiles, kRowStride]: -infinity where a row sees nothing of the tile
};

// What rows collect beside their evidence; each part only if it is asked for.
struct RowCollector {
  TopOfRows top;
  GroupsOfRows groups;
  OverviewOfRows overview;
};

// Before the first tile: nothing has been seen.
void begin_collecting(const RowCollector& collector, size_t rows);

// The keys that rows name, in falling order of weight, of equal scores the lower key first.
struct NamedKeys {
  float* weights;  // [rows, count]: exp2(t - reference) / sum, bit for bit those that are shown
  uint32_t* keys;  // [rows, count]: kNoKey, with weight 0, where the row sees no more
};
constexpr uint32_t kNoKey = UINT32_MAX;

// The end of rows whose summaries are finished. A row that is NaN names no key, with NaN for weights.
void finish_top(const TopOfRows& top, std::span<const RowSummary> summaries, const NamedKeys& named);

// The end of rows whose summaries are finished: gathered scores become weights, sums the mass of their groups; NaN in a
// row that is NaN. In place.
void finish_groups(const GroupsOfRows& groups, std::span<const RowSummary> summaries);

// A pooled map that rows are added to.
struct OverviewMap {
  size_t bins;           // of keys
  double* sums;          // [query bins, bins]
  float* maxima;         // [query bins, bins]
  const size_t* places;  // [rows]: the query bin of each row
  float* pooled;         // [2 bins + 16, 16], to work in
};

// Adds rows whose summaries are finished to a map, in order. A row that is NaN makes its query bin NaN.
void finish_overview(const OverviewOfRows& overview, std::span<const RowSummary> summaries, const OverviewMap& map);

}  // namespace clearhead::kernels
