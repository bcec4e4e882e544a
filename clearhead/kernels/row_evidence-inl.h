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
#include <cstddef>
#include <cstdint>

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
  void begin_row(size_t, const float*, size_t, float) {}
  void add(size_t, size_t, FloatVec, FloatVec) {}
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

class KeptEvidence : public NoEvidence {
 public:
  // first_key is that of the scores; rows, positions and found are those of the first row.
  KeptEvidence(const EvidenceOfRows& kept, size_t row, size_t first_key, RowEvidence* found)
      : positions_(kept.positions + row),
        first_key_(first_key),
        found_(found),
        before_(found == kept.rows + row ? nullptr : kept.rows + row) {}

  // A position outside the tile is as far from a key as from the tile's nearest key, and what both have in common.
  HWY_INLINE void begin_row(size_t row, const float* scores, size_t count, float largest) {
    score_sum_ = VirtualLanes();
    distance_sum_ = VirtualLanes();
    const int64_t place = positions_[row] - static_cast<int64_t>(first_key_ - first_key_ % kTileKeys);
    const int64_t inside = std::clamp<int64_t>(place, 0, kFarthest);
    outside_[row] = static_cast<float>(place < inside ? inside - place : place - inside);
    distances_ = kDistances.data() + (kFarthest - static_cast<size_t>(inside)) + first_key_ % kTileKeys;
    found_[row].largest = largest;
    const bool known = before_ != nullptr && !(largest > before_[row].largest);  // then its key does not matter
    for (size_t r = 0; r < kRegisters; ++r) {
      key_lanes_.set(row, r, known ? hn::Zero(FloatTag()) : first_places(scores, count, r, largest));
    }
  }

  // Hidden keys have shifted = -infinity and power 0; below -126 every power is 0.
  HWY_INLINE void add(size_t i, size_t r, FloatVec shifted, FloatVec power) {
    const FloatTag tag;
    score_sum_.multiply_add(r, power, hn::Max(shifted, hn::Set(tag, -127.0f)));
    distance_sum_.multiply_add(r, power, hn::LoadU(tag, distances_ + i + r * kLanes));
  }

  HWY_INLINE void end_row(size_t row) {
    for (size_t r = 0; r < kRegisters; ++r) {
      score_lanes_.set(row, r, score_sum_.lanes(r));
      distance_lanes_.set(row, r, distance_sum_.lanes(r));
    }
  }

  // sums [rows]: of the powers of each row.
  HWY_INLINE void end(size_t rows, const float* sums) {
    alignas(64) float scores[kVirtualLanes], distances[kVirtualLanes], places[kVirtualLanes];
    const auto add = [](FloatVec a, FloatVec b) HWY_ATTR { return hn::Add(a, b); };
    score_lanes_.fold(add, scores);
    distance_lanes_.fold(add, distances);
    key_lanes_.fold([](FloatVec a, FloatVec b) HWY_ATTR { return hn::Min(a, b); }, places);
    for (size_t row = 0; row < rows; ++row) {
      found_[row].score_sum = scores[row];
      found_[row].distance_sum = distances[row] + outside_[row] * sums[row];
      found_[row].key = first_key_ + (places[row] < kNowhere ? static_cast<size_t>(places[row]) : 0);
    }
  }

 private:
  static constexpr float kNowhere = kTileKeys;

  // Of every lane of register r the first place that holds the value, without a branch.
  static HWY_INLINE FloatVec first_places(const float* scores, size_t count, size_t r, float value) {
    const FloatTag tag;
    const FloatVec wanted = hn::Set(tag, value);
    FloatVec found = hn::Set(tag, kNowhere);
    FloatVec place = hn::Iota(tag, static_cast<float>(count - kVirtualLanes + r * kLanes));
    for (size_t i = count; i > 0; i -= kVirtualLanes) {
      const FloatVec here = hn::LoadU(tag, scores + i - kVirtualLanes + r * kLanes);
      found = hn::IfThenElse(hn::Eq(here, wanted), place, found);
      place = hn::Sub(place, hn::Set(tag, static_cast<float>(kVirtualLanes)));
    }
    return found;
  }

  const int64_t* positions_;
  size_t first_key_;
  RowEvidence* found_;
  const RowEvidence* before_;  // of the tiles to the left; nullptr: there are none
  VirtualLanes score_sum_, distance_sum_;
  const float* distances_ = nullptr;  // of the keys of the row
  float outside_[kVirtualLanes];
  RowLanes score_lanes_, distance_lanes_, key_lanes_;
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
