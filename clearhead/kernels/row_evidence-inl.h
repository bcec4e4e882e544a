// SPDX-License-Identifier: Apache-2.0
// What is gathered of at most 16 rows of one key tile while their exponentials are computed, chosen at compile time.
#if defined(CLEARHEAD_KERNELS_ROW_EVIDENCE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_KERNELS_ROW_EVIDENCE_INL_H
#undef CLEARHEAD_KERNELS_ROW_EVIDENCE_INL_H
#else
#define CLEARHEAD_KERNELS_ROW_EVIDENCE_INL_H
#endif

#include <hwy/highway.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "clearhead/kernels/attention_tile.h"
#include "clearhead/kernels/merge-inl.h"
#include "clearhead/kernels/row_evidence.h"
#include "clearhead/kernels/row_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

// Nothing is gathered.
struct NoEvidence {
  void see_scores(const RowLanes&, const float*, const float*, size_t, size_t) {}
  void begin_row(size_t, const float*, size_t, const float*, float) {}
  void add(size_t, FloatVec, FloatVec) {}
  void end_row(size_t) {}
  void end(size_t, const float*) {}
  void see_powers(const float*, size_t, size_t, const RowSummary*) {}
};

// |i - 255| for i = 0, 1, ..., 511: distances inside a tile, whatever place of it they are from.
constexpr size_t kFarthest = kTileKeys - 1;
constexpr std::array<float, 2 * kTileKeys> distance_table() {
  std::array<float, 2 * kTileKeys> table{};
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<float>(i < kFarthest ? kFarthest - i : i - kFarthest);
  return table;
}
alignas(64) inline constexpr std::array<float, 2 * kTileKeys> kDistances = distance_table();

// The first place that holds the largest of count scores, 0 if none does. Shapes: scores [count], a multiple of 16;
// maxima [16], of each virtual lane.
HWY_INLINE size_t first_place(const float* scores, size_t count, const float* maxima, float largest) {
  const FloatTag tag;
  uint32_t lanes = 0;
  for (size_t r = 0; r < kRegisters; ++r) {
    uint8_t bits[8] = {};
    hn::StoreMaskBits(tag, hn::Eq(hn::LoadU(tag, maxima + r * kLanes), hn::Set(tag, largest)), bits);
    uint16_t own;
    std::memcpy(&own, bits, sizeof(own));
    lanes |= static_cast<uint32_t>(own) << (r * kLanes);
  }
  if (std::popcount(lanes) != 1 || largest == 0) {  // 0 has two signs
    const float* found = std::find(scores, scores + count, largest);
    return found == scores + count ? 0 : static_cast<size_t>(found - scores);
  }
  const float* lane = scores + std::countr_zero(lanes);
  const uint32_t wanted = std::bit_cast<uint32_t>(largest);
  size_t place = 0;
  for (size_t i = count; i > 0; i -= kVirtualLanes) {
    place = std::bit_cast<uint32_t>(lane[i - kVirtualLanes]) == wanted ? i - kVirtualLanes : place;
  }
  return place + static_cast<size_t>(std::countr_zero(lanes));
}

// Rows [first, first + count) of those that are worked on together.
struct SomeRows {
  size_t first, count;
};

class KeptEvidence : public NoEvidence {
 public:
  // first_key is that of the scores; rows, positions and found are those of the first row.
  KeptEvidence(const EvidenceOfRows& kept, const SomeRows& rows, size_t first_key, RowEvidence* found)
      : positions_(kept.positions + rows.first),
        first_key_(first_key),
        found_(found),
        score_lanes_(rows.count),
        distance_lanes_(rows.count) {}

  // A position outside the tile is as far from a key as from the tile's nearest key, and what both have in common.
  HWY_INLINE void begin_row(size_t row, const float* scores, size_t count, const float* maxima, float largest) {
    score_sum_ = VirtualLanes();
    distance_sum_ = VirtualLanes();
    const int64_t place = positions_[row] - static_cast<int64_t>(first_key_ - first_key_ % kTileKeys);
    const int64_t inside = std::clamp<int64_t>(place, 0, kFarthest);
    outside_[row] = static_cast<float>(place < inside ? inside - place : place - inside);
    distances_ = kDistances.data() + (kFarthest - static_cast<size_t>(inside)) + first_key_ % kTileKeys;
    found_[row].largest = largest;
    found_[row].key = first_key_ + first_place(scores, count, maxima, largest);
  }

  // Of the keys from place on. Hidden keys have shifted = -infinity and power 0; below -126 every power is 0.
  HWY_INLINE void add(size_t place, FloatVec shifted, FloatVec power) {
    const FloatTag tag;
    const size_t r = place / kLanes % kRegisters;
    score_sum_.multiply_add(r, power, hn::Max(shifted, hn::Set(tag, -127.0f)));
    distance_sum_.multiply_add(r, power, hn::LoadU(tag, distances_ + place));
  }

  HWY_INLINE void end_row(size_t row) {
    for (size_t r = 0; r < kRegisters; ++r) {
      score_lanes_.set(row, r, score_sum_.lanes(r));
      distance_lanes_.set(row, r, distance_sum_.lanes(r));
    }
  }

  // sums [rows]: of the powers of each row.
  HWY_INLINE void end(size_t rows, const float* sums) {
    alignas(64) float scores[kVirtualLanes], distances[kVirtualLanes];
    const auto add = [](FloatVec a, FloatVec b) HWY_ATTR { return hn::Add(a, b); };
    score_lanes_.fold(add, scores);
    distance_lanes_.fold(add, distances);
    for (size_t row = 0; row < rows; ++row) {
      found_[row].score_sum = scores[row];
      found_[row].distance_sum = distances[row] + outside_[row] * sums[row];
    }
  }

 private:
  const int64_t* positions_;
  size_t first_key_;
  RowEvidence* found_;
  VirtualLanes score_sum_, distance_sum_;
  const float* distances_ = nullptr;  // of the keys of the row
  float outside_[kVirtualLanes];
  RowLanes score_lanes_, distance_lanes_;
};

// Merges the evidence of a tile into that of a row whose summary has not been merged yet.
HWY_INLINE void merge_evidence(RowEvidence& row, const RowSummary& summary, const RowEvidence& tile,
                               const RowSummary& tile_summary) {
  if (tile_summary.reference == kNoReference) return;
  if (summary.reference == kNoReference) {
    row = tile;
    return;
  }
  const MergeFactors factors = merge_factors(summary.reference, tile_summary.reference);
  const float shifted = row.score_sum + summary.sum * (summary.reference - factors.reference);
  const float tile_shifted = tile.score_sum + tile_summary.sum * (tile_summary.reference - factors.reference);
  row.score_sum = merged(shifted, tile_shifted, factors);
  row.distance_sum = merged(row.distance_sum, tile.distance_sum, factors);
  if (!(tile.largest > row.largest)) return;
  row.largest = tile.largest;
  row.key = tile.key;
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();
#endif
