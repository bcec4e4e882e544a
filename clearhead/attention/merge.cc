// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/merge.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/attention/merge.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace clearhead::attention {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// output[i] = output[i] old + tile[i] added for i in [begin, count - count % lanes); returns where it ended.
template <class Tag>
size_t merge_part(Tag tag, size_t begin, std::span<float> output, std::span<const float> tile, float old, float added) {
  size_t i = begin;
  for (; i + hn::Lanes(tag) <= output.size(); i += hn::Lanes(tag)) {
    const auto kept = hn::Mul(hn::LoadU(tag, &output[i]), hn::Set(tag, old));
    hn::StoreU(hn::MulAdd(hn::LoadU(tag, &tile[i]), hn::Set(tag, added), kept), tag, &output[i]);
  }
  return i;
}

// The sum travels as one more element, so that it is computed as the outputs are.
void merge_values(float* sum, std::span<float> output, float tile_sum, std::span<const float> tile, float old,
                  float added) {
  const hn::CappedTag<float, 1> one;
  merge_part(one, 0, {sum, 1}, {&tile_sum, 1}, old, added);
  merge_part(one, merge_part(hn::ScalableTag<float>(), 0, output, tile, old, added), output, tile, old, added);
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::attention
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::attention {
namespace {

HWY_EXPORT(merge_values);

// 2^exponent for an integer that is at most 0; below -126 it is 0.
float power_of_two(float exponent) {
  if (exponent < -126.0f) return 0.0f;
  return std::bit_cast<float>((127 + static_cast<int32_t>(exponent)) << 23);
}

float canonical(float value) { return std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value; }

}  // namespace

void merge(kernels::RowSummary& row, std::span<float> output, const kernels::RowSummary& tile,
           std::span<const float> tile_output) {
  if (!has_seen(tile)) return;
  if (!has_seen(row)) {
    row = tile;
    std::copy(tile_output.begin(), tile_output.end(), output.begin());
    return;
  }
  const float reference = std::max(row.reference, tile.reference);
  const float old = power_of_two(row.reference - reference), added = power_of_two(tile.reference - reference);
  HWY_DYNAMIC_DISPATCH(merge_values)(&row.sum, output, tile.sum, tile_output, old, added);
  row.reference = reference;
}

void merge_sink(kernels::RowSummary& row, std::span<float> output, float sink) {
  if (!has_seen(row)) return;
  float score = sink * std::numbers::log2e_v<float>;
  const kernels::RowSummary tile = kernels::softmax_tile({&score, 1}, {});
  if (!has_seen(tile)) return;
  const float reference = std::max(row.reference, tile.reference);
  const float old = power_of_two(row.reference - reference), added = power_of_two(tile.reference - reference);
  HWY_DYNAMIC_DISPATCH(merge_values)(&row.sum, {}, tile.sum, {}, old, added);
  for (float& value : output) value = value * old + 0.0f;  // as adding 0 times added does
  row.reference = reference;
}

void finish(kernels::RowSummary& row, std::span<float> output) {
  if (!has_seen(row)) {
    std::fill(output.begin(), output.end(), 0.0f);
    return;
  }
  row.sum = canonical(row.sum);
  const float reciprocal = 1.0f / row.sum;
  for (float& value : output) value = canonical(value * reciprocal);
}

}  // namespace clearhead::attention
#endif
