// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/row_collect.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/kernels/row_collect.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/row_groups-inl.h"
#include "clearhead/kernels/row_top-inl.h"
#include "clearhead/kernels/softmax-inl.h"
#include "clearhead/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

// exp2(score - reference) / sum as weights_of_scores has it, exactly 0 for a score of -infinity.
HWY_INLINE FloatVec weights_of(FloatVec scores, FloatVec references, FloatVec sums) {
  const FloatTag tag;
  const FloatVec infinity = hn::Set(tag, kInfinity);
  const FloatVec weights = hn::Div(exp2_below_127(tag, hn::Sub(scores, references)), sums);
  return hn::IfThenZeroElse(hn::Eq(scores, hn::Neg(infinity)), weights);
}

HWY_INLINE void finish_top_of_row(const TopOfRows& top, size_t row, const RowSummary& summary, const NamedKeys& named) {
  const float* scores = top.scores + row * kTopRoom;
  const uint32_t* keys = top.keys + row * kTopRoom;
  const bool number = summary.sum == summary.sum;
  const size_t count = number ? std::min<size_t>(top.count, top.found[row]) : 0;
  alignas(64) float best[kMostTop + kVirtualLanes];
  uint32_t order[kTopRoom];
  order_scores(scores, top.found[row], count, order);
  for (size_t i = 0; i < count; ++i) {
    best[i] = scores[order[i]];
    named.keys[i] = keys[order[i]];
  }
  for (size_t i = count; i < top.count; ++i) {
    named.keys[i] = kNoKey;
    named.weights[i] = number ? 0.0f : canonical(summary.sum);
  }
  const FloatTag tag;
  const FloatVec reference = hn::Set(tag, summary.reference), sum = hn::Set(tag, summary.sum);
  for (size_t i = 0; i < count; i += kLanes) {
    hn::Store(weights_of(hn::LoadU(tag, best + i), reference, sum), tag, best + i);
  }
  for (size_t i = 0; i < count; ++i) named.weights[i] = best[i];
}

void finish_top(const TopOfRows& top, std::span<const RowSummary> summaries, const NamedKeys& named) {
  for (size_t row = 0; row < summaries.size(); ++row) {
    finish_top_of_row(top, row, summaries[row], {named.weights + row * top.count, named.keys + row * top.count});
  }
}

// References and sums of rows, and room for a group of 16 behind them.
struct SummaryColumns {
  alignas(64) float references[kRowStride], sums[kRowStride];

  explicit SummaryColumns(std::span<const RowSummary> summaries) {
    std::fill_n(references, kRowStride, -kInfinity);
    std::fill_n(sums, kRowStride, 0.0f);
    for (size_t i = 0; i < summaries.size(); ++i) {
      references[i] = summaries[i].reference;
      sums[i] = summaries[i].sum;
    }
  }
};

void finish_groups(const GroupsOfRows& groups, std::span<const RowSummary> summaries) {
  const FloatTag tag;
  const SummaryColumns rows(summaries);
  for (size_t i = 0; i < summaries.size(); i += kLanes) {
    const FloatVec reference = hn::Load(tag, rows.references + i), sum = hn::Load(tag, rows.sums + i);
    const auto nan = hn::IsNaN(sum);
    for (size_t slot = 0; slot < groups.slots; ++slot) {
      float* place = groups.scores + slot * kRowStride + i;
      const FloatVec weight = weights_of(hn::LoadU(tag, place), reference, sum);
      hn::StoreU(canonical(hn::IfThenElse(nan, sum, weight)), tag, place);
    }
    const FloatVec own = hn::LoadU(tag, groups.references + i);
    const FloatVec factor = powers_of_two(hn::Sub(own, reference));
    const auto seen = hn::Gt(own, hn::Set(tag, -kInfinity));
    for (size_t column = 0; column < groups.columns; ++column) {
      float* place = groups.sums + column * kRowStride + i;
      const FloatVec mass = hn::IfThenElseZero(seen, hn::Div(hn::Mul(hn::LoadU(tag, place), factor), sum));
      hn::StoreU(canonical(hn::IfThenElse(nan, sum, mass)), tag, place);
    }
  }
}

// What the kLanes rows from row on give to each bin: pooled [2 bins, 16], sums, then maxima.
HWY_INLINE void pool_bins(const OverviewOfRows& overview, const SummaryColumns& rows, size_t row, size_t bins,
                          float* pooled) {
  const FloatTag tag;
  const FloatVec reference = hn::Load(tag, rows.references + row);
  const FloatVec inverse = hn::Div(hn::Set(tag, 1.0f), hn::Load(tag, rows.sums + row));
  size_t part = 0;
  size_t tile = SIZE_MAX;
  FloatVec factor = inverse;
  auto seen = hn::Gt(reference, reference);
  for (size_t bin = 0; bin < bins; ++bin) {
    FloatVec sum = hn::Zero(tag), largest = hn::Zero(tag);
    for (; part < overview.parts.size() && overview.parts[part].bin == bin; ++part) {
      if (overview.parts[part].tile != tile) {
        tile = overview.parts[part].tile;
        const FloatVec own = hn::LoadU(tag, overview.references + tile * kRowStride + row);
        factor = hn::Mul(powers_of_two(hn::Sub(own, reference)), inverse);
        seen = hn::Gt(own, hn::Set(tag, -kInfinity));
      }
      const size_t place = part * kRowStride + row;
      sum = hn::Add(sum, hn::IfThenElseZero(seen, hn::Mul(hn::LoadU(tag, overview.sums + place), factor)));
      const FloatVec other = hn::IfThenElseZero(seen, hn::Mul(hn::LoadU(tag, overview.maxima + place), factor));
      largest = hn::Max(largest, other);
    }
    hn::StoreU(sum, tag, pooled + bin * kVirtualLanes);
    hn::StoreU(largest, tag, pooled + (bins + bin) * kVirtualLanes);
  }
}

// Adds one row of pooled sums and maxima to a row of the map.
HWY_INLINE void add_to_map(const float* sums, const float* maxima, size_t count, double* map_sums, float* map_maxima) {
  for (size_t i = 0; i < count; ++i) map_sums[i] += static_cast<double>(sums[i]);
  for (size_t i = 0; i < count; ++i) {  // a cell that is NaN stays so
    map_maxima[i] = maxima[i] > map_maxima[i] ? maxima[i] : map_maxima[i];
  }
}

void finish_overview(const OverviewOfRows& overview, std::span<const RowSummary> summaries, const OverviewMap& map) {
  const SummaryColumns rows(summaries);
  const size_t bins = map.bins;
  alignas(64) float sums[kVirtualLanes][kVirtualLanes], maxima[kVirtualLanes][kVirtualLanes];  // [row, bin]
  for (size_t first = 0; first < summaries.size(); first += kVirtualLanes) {
    const size_t count = std::min(kVirtualLanes, summaries.size() - first);
    for (size_t i = 0; i < count; i += kLanes) pool_bins(overview, rows, first + i, bins, map.pooled + i);
    for (size_t bin = 0; bin < bins; bin += kVirtualLanes) {
      const float* pooled = map.pooled + bin * kVirtualLanes;
      for (size_t i = 0; i < kVirtualLanes; i += 4) {
        transpose_4_by_16(pooled + i, kVirtualLanes, sums[i]);
        transpose_4_by_16(pooled + bins * kVirtualLanes + i, kVirtualLanes, maxima[i]);
      }
      const size_t width = std::min(kVirtualLanes, bins - bin);
      for (size_t i = 0; i < count; ++i) {
        double* map_sums = map.sums + map.places[first + i] * bins + bin;
        float* map_maxima = map.maxima + map.places[first + i] * bins + bin;
        if (!(rows.sums[first + i] == rows.sums[first + i])) {
          std::fill_n(map_sums, width, std::numeric_limits<double>::quiet_NaN());
          std::fill_n(map_maxima, width, std::numeric_limits<float>::quiet_NaN());
        } else if (width == kVirtualLanes) {
          add_to_map(sums[i], maxima[i], kVirtualLanes, map_sums, map_maxima);
        } else {
          add_to_map(sums[i], maxima[i], width, map_sums, map_maxima);
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::kernels {

HWY_EXPORT(finish_top);
HWY_EXPORT(finish_groups);
HWY_EXPORT(finish_overview);

void begin_collecting(const RowCollector& collector, size_t rows) {
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  const TopOfRows& top = collector.top;
  if (top.count > 0) {
    std::fill_n(top.found, rows, 0u);
    std::fill_n(top.bound, kRowStride, kNothing);
    std::fill_n(top.largest, 16 * kRowStride, kNothing);
  }
  const GroupsOfRows& groups = collector.groups;
  std::fill_n(groups.scores, groups.slots * kRowStride, kNothing);
  if (groups.columns > 0) {
    std::fill_n(groups.sums, groups.columns * kRowStride, 0.0f);
    std::fill_n(groups.references, kRowStride, kNothing);
  }
  const OverviewOfRows& overview = collector.overview;
  if (!overview.parts.empty()) {
    std::fill_n(overview.references, (overview.first_parts.size() - 1) * kRowStride, kNothing);
  }
}

void finish_top(const TopOfRows& top, std::span<const RowSummary> summaries, const NamedKeys& named) {
  HWY_DYNAMIC_DISPATCH(finish_top)(top, summaries, named);
}

void finish_groups(const GroupsOfRows& groups, std::span<const RowSummary> summaries) {
  HWY_DYNAMIC_DISPATCH(finish_groups)(groups, summaries);
}

void finish_overview(const OverviewOfRows& overview, std::span<const RowSummary> summaries, const OverviewMap& map) {
  HWY_DYNAMIC_DISPATCH(finish_overview)(overview, summaries, map);
}

}  // namespace clearhead::kernels
#endif
