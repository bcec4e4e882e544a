// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/merge.h"

#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/attention/merge.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/merge-inl.h"
#include "clearhead/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::attention {
namespace HWY_NAMESPACE {

void merge(kernels::RowSummary& row, std::span<float> output, const kernels::RowSummary& tile,
           std::span<const float> tile_output) {
  kernels::HWY_NAMESPACE::merge_inline(row, output.data(), tile, tile_output.data(), output.size());
}

void merge_sink(kernels::RowSummary& row, std::span<float> output, float sink) {
  namespace k = kernels::HWY_NAMESPACE;
  if (!has_seen(row)) return;
  float score = sink * std::numbers::log2e_v<float>;
  const kernels::RowSummary tile = k::exponentials_of_tile(&score, 1);
  if (!has_seen(tile)) return;
  const k::MergeFactors factors = k::merge_factors(row.reference, tile.reference);
  for (float& value : output) value = value * factors.old + 0.0f;  // as adding 0 times added does
  const float rounded_sum = row.rounded_sum == 0 ? 0.0f : k::merged(row.rounded_sum, tile.sum, factors);
  row = {factors.reference, k::merged(row.sum, tile.sum, factors), rounded_sum};
}

void finish(kernels::RowSummary& row, std::span<float> output) {
  kernels::HWY_NAMESPACE::finish_inline(row, output.data(), output.size(), output.data());
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::attention
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::attention {

HWY_EXPORT(merge);
HWY_EXPORT(merge_sink);
HWY_EXPORT(finish);

void merge(kernels::RowSummary& row, std::span<float> output, const kernels::RowSummary& tile,
           std::span<const float> tile_output) {
  HWY_DYNAMIC_DISPATCH(merge)(row, output, tile, tile_output);
}

void merge_sink(kernels::RowSummary& row, std::span<float> output, float sink) {
  HWY_DYNAMIC_DISPATCH(merge_sink)(row, output, sink);
}

void finish(kernels::RowSummary& row, std::span<float> output) { HWY_DYNAMIC_DISPATCH(finish)(row, output); }

}  // namespace clearhead::attention
#endif
