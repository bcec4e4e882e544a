// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/exact_stages.h"

#include <algorithm>
#include <limits>

namespace clearhead::attention {

using capture::Stage;

ExactStages::ExactStages(const tensor::Shape& shape, const capture::Observer* observer, size_t layer) {
  const auto prepare = [&](Stage stage, bool& wanted, tensor::Tensor& values, float elsewhere) {
    wanted = observer != nullptr && observer->wants(stage, layer);
    if (!wanted) return;
    values = tensor::Tensor(shape);
    if (elsewhere != 0) std::ranges::fill(values.as<float>(), elsewhere);
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  prepare(Stage::raw_scores, raw_scores, raw, 0);
  prepare(Stage::scores, scores, natural, -kInfinity);
  prepare(Stage::kernel_scores, kernel_scores, kernel, -kInfinity);
  prepare(Stage::weights, weights, weight, 0);
}

void ExactStages::show(const tensor::Tensor& row_reference, const tensor::Tensor& row_sum, capture::Observer& observer,
                       size_t layer) const {
  if (raw_scores) observer.observe(Stage::raw_scores, layer, raw);
  if (scores) observer.observe(Stage::scores, layer, natural);
  if (kernel_scores) observer.observe(Stage::kernel_scores, layer, kernel);
  if (observer.wants(Stage::row_reference, layer)) observer.observe(Stage::row_reference, layer, row_reference);
  if (observer.wants(Stage::row_sum, layer)) observer.observe(Stage::row_sum, layer, row_sum);
  if (weights) observer.observe(Stage::weights, layer, weight);
}

}  // namespace clearhead::attention
