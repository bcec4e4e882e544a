// SPDX-License-Identifier: Apache-2.0
// Evidence together with everything that a collector asks for.
#if defined(CLEARHEAD_KERNELS_ROW_COLLECT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_KERNELS_ROW_COLLECT_INL_H
#undef CLEARHEAD_KERNELS_ROW_COLLECT_INL_H
#else
#define CLEARHEAD_KERNELS_ROW_COLLECT_INL_H
#endif

#include <hwy/highway.h>
#include <cstddef>

#include "clearhead/kernels/row_collect.h"
#include "clearhead/kernels/row_evidence-inl.h"
#include "clearhead/kernels/row_groups-inl.h"
#include "clearhead/kernels/row_overview-inl.h"
#include "clearhead/kernels/row_top-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

class CollectedEvidence : public KeptEvidence {
 public:
  CollectedEvidence(const EvidenceOfRows& kept, const SomeRows& rows, size_t first_key, RowEvidence* found)
      : KeptEvidence(kept, rows, first_key, found), kept_(kept), row_(rows.first), first_key_(first_key) {}

  // Scores before they become powers, with the largest of each virtual lane and of each row.
  HWY_INLINE void see_scores(const RowLanes& lanes, const float* largest, const float* scores, size_t rows,
                             size_t count) {
    const RowCollector& collector = *kept_.collector;
    if (collector.top.count > 0) TopCollector(collector.top, row_, first_key_).see(lanes, largest, scores, rows, count);
    GroupCollector(collector.groups, kept_.positions, row_, first_key_).gather(scores, rows, count);
  }

  HWY_INLINE void see_powers(const float* powers, size_t rows, size_t count, const RowSummary* summaries) {
    const RowCollector& collector = *kept_.collector;
    GroupCollector(collector.groups, kept_.positions, row_, first_key_).add(powers, rows, count, summaries);
    if (collector.overview.parts.empty()) return;
    OverviewCollector(collector.overview, row_, first_key_).add(powers, rows, count, summaries);
  }

 private:
  const EvidenceOfRows& kept_;
  size_t row_, first_key_;
};

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();
#endif
