// SPDX-License-Identifier: Apache-2.0
// What is gathered of at most 16 rows of one key tile while their exponentials are computed, chosen at compile time.
#if defined(CLEARHEAD_KERNELS_ROW_EVIDENCE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_KERNELS_ROW_EVIDENCE_INL_H
#undef CLEARHEAD_KERNELS_ROW_EVIDENCE_INL_H
#else
#define CLEARHEAD_KERNELS_ROW_EVIDENCE_INL_H
#endif

#include <hwy/highway.h>
#include <cstddef>

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
  void end(size_t) {}
  void see_powers(const float*, size_t, size_t, const RowSummary*) {}
};

class KeptEvidence : public NoEvidence {
 public:
  // first_key is that of the scores; rows, positions and found are those of the first row.
  KeptEvidence(const EvidenceOfRows& kept, size_t row, size_t first_key, RowEvidence* found)
      : positions_(kept.positions + row), first_key_(first_key), found_(found) {}

  HWY_INLINE void begin_row(size_t row, const float* scores, size_t count, float largest) {
    score_sum_ = VirtualLanes();
    distance_sum_ = VirtualLanes();
    offset_ = static_cast<float>(static_cast<int64_t>(first_key_) - positions_[row]);
    found_[row].largest = largest;
    found_[row].key = first_key_ + first_of(scores, count, largest);
  }

  // Hidden keys have shifted = -infinity and power 0; below -126 every power is 0.
  HWY_INLINE void add(size_t i, size_t r, FloatVec shifted, FloatVec power) {
    const FloatTag tag;
    score_sum_.multiply_add(r, power, hn::Max(shifted, hn::Set(tag, -127.0f)));
    const FloatVec distance = hn::Add(hn::Set(tag, offset_), hn::Iota(tag, static_cast<float>(i + r * kLanes)));
    distance_sum_.multiply_add(r, power, hn::Abs(distance));
  }

  HWY_INLINE void end_row(size_t row) {
    for (size_t r = 0; r < kRegisters; ++r) {
      score_lanes_.set(row, r, score_sum_.lanes(r));
      distance_lanes_.set(row, r, distance_sum_.lanes(r));
    }
  }

  HWY_INLINE void end(size_t rows) {
    alignas(64) float scores[kVirtualLanes], distances[kVirtualLanes];
    const auto add = [](FloatVec a, FloatVec b) HWY_ATTR { return hn::Add(a, b); };
    score_lanes_.fold(add, scores);
    distance_lanes_.fold(add, distances);
    for (size_t row = 0; row < rows; ++row) {
      found_[row].score_sum = scores[row];
      found_[row].distance_sum = distances[row];
    }
  }

 private:
  static HWY_INLINE size_t first_of(const float* scores, size_t count, float value) {
    const FloatTag tag;
    for (size_t i = 0; i < count; i += kLanes) {
      const auto found = hn::FindFirstTrue(tag, hn::Eq(hn::LoadU(tag, scores + i), hn::Set(tag, value)));
      if (found >= 0) return i + static_cast<size_t>(found);
    }
    return 0;
  }

  const int64_t* positions_;
  size_t first_key_;
  RowEvidence* found_;
  VirtualLanes score_sum_, distance_sum_;
  float offset_ = 0;
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
