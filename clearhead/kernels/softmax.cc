// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/softmax.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/kernels/softmax.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

bool softmax(std::span<const float> input, std::span<float> output) {
  const FloatTag tag;
  const size_t count = input.size();
  if (output.data() != input.data()) std::copy(input.begin(), input.end(), output.begin());
  const float largest = row_maximum(output.data(), count);
  if (largest == -kInfinity && !holds_nan(output.data(), count)) {
    std::fill_n(output.data(), count, 0.0f);
    return false;
  }
  const FloatVec maxima = hn::Set(tag, largest), log2_e = hn::Set(tag, 1.44269504f);
  const auto power = [&](FloatVec x) HWY_ATTR { return exp2_below_127(tag, hn::Mul(hn::Sub(x, maxima), log2_e)); };
  const FloatVec sum = hn::Set(tag, map_and_sum(output.data(), count, power));
  map_elements(
      output.data(), count, [&](FloatVec p) HWY_ATTR { return hn::Div(p, sum); }, output.data());
  return true;
}

void zero_hidden_keys(std::span<float> values, std::span<const uint8_t> visible) {
  for (size_t j = 0; j < visible.size(); ++j) values[j] = visible[j] != 0 ? values[j] : 0.0f;
}

RowSummary softmax_tile(std::span<float> scores, std::span<const uint8_t> visible) {
  if (!visible.empty()) hide_keys(scores.data(), visible.data(), scores.size());
  const RowSummary summary = exponentials_of_tile(scores.data(), scores.size());
  if (std::isnan(summary.sum)) zero_hidden_keys(scores, visible);
  return summary;
}

void weights_of_scores(std::span<const float> scores, std::span<const uint8_t> visible, RowSummary summary,
                       std::span<float> weights) {
  const FloatTag tag;
  if (summary.reference == -kInfinity) {
    std::fill(weights.begin(), weights.end(), 0.0f);
    return;
  }
  if (weights.data() != scores.data()) std::copy(scores.begin(), scores.end(), weights.begin());
  if (!visible.empty()) hide_keys(weights.data(), visible.data(), weights.size());
  const FloatVec reference = hn::Set(tag, summary.reference), sum = hn::Set(tag, summary.sum);
  const auto weight = [&](FloatVec t) HWY_ATTR { return hn::Div(exp2_below_127(tag, hn::Sub(t, reference)), sum); };
  map_elements(weights.data(), weights.size(), weight, weights.data());
  if (std::isnan(summary.sum)) zero_hidden_keys(weights, visible);
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::kernels {

HWY_EXPORT(softmax);
HWY_EXPORT(softmax_tile);
HWY_EXPORT(weights_of_scores);

bool softmax(std::span<const float> input, std::span<float> output) {
  return HWY_DYNAMIC_DISPATCH(softmax)(input, output);
}

RowSummary softmax_tile(std::span<float> scores, std::span<const uint8_t> visible) {
  return HWY_DYNAMIC_DISPATCH(softmax_tile)(scores, visible);
}

void weights_of_scores(std::span<const float> scores, std::span<const uint8_t> visible, RowSummary summary,
                       std::span<float> weights) {
  HWY_DYNAMIC_DISPATCH(weights_of_scores)(scores, visible, summary, weights);
}

}  // namespace clearhead::kernels
#endif
