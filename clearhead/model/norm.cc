// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/norm.h"

#include <span>

#include "clearhead/base/parallel.h"
#include "clearhead/kernels/layer_norm.h"

namespace clearhead::model {
namespace {

kernels::LayerNormParameters kernel_parameters(const NormParameters& norm, float epsilon) {
  return {norm.gain.as<float>(), norm.bias.as<float>(), epsilon};
}

}  // namespace

void norm_rows(const NormParameters& norm, float epsilon, const tensor::Tensor& input, tensor::Tensor& output) {
  const kernels::LayerNormParameters parameters = kernel_parameters(norm, epsilon);
  const size_t d_model = parameters.gain.size();
  const std::span<const float> from = input.as<float>();
  const std::span<float> into = output.as<float>();
  base::parallel_for(from.size() / d_model, [&](size_t row) {
    kernels::layer_norm(from.subspan(row * d_model, d_model), parameters, into.subspan(row * d_model, d_model));
  });
}

void add_norm_rows(const NormParameters& norm, float epsilon, const tensor::Tensor& input,
                   const tensor::Tensor& residual, tensor::Tensor& output) {
  const kernels::LayerNormParameters parameters = kernel_parameters(norm, epsilon);
  const size_t d_model = parameters.gain.size();
  const std::span<const float> from = input.as<float>(), more = residual.as<float>();
  const std::span<float> into = output.as<float>();
  base::parallel_for(from.size() / d_model, [&](size_t row) {
    const size_t at = row * d_model;
    kernels::add_layer_norm(from.subspan(at, d_model), more.subspan(at, d_model), parameters,
                            into.subspan(at, d_model));
  });
}

}  // namespace clearhead::model
