// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/norm.h"

#include <algorithm>

#include "clearhead/base/parallel.h"
#include "clearhead/kernels/layer_norm.h"
#include "clearhead/kernels/rms_norm.h"

namespace clearhead::model {
namespace {

constexpr size_t kRows = 16;  // that one thread takes at a time

kernels::LayerNormParameters kernel_parameters(const NormParameters& norm, float epsilon) {
  return {norm.gain.as<float>(), norm.bias.as<float>(), epsilon};
}

bool is_rms(const NormParameters& norm) { return norm.bias.elements() == 0; }

void norm_row(const NormParameters& norm, float epsilon, std::span<const float> x, std::span<float> y) {
  if (is_rms(norm)) return kernels::rms_norm(x, norm.gain.as<float>(), epsilon, y);
  kernels::layer_norm(x, kernel_parameters(norm, epsilon), y);
}

// Calls body(first, count) for blocks of so many elements of all rows, on all threads.
template <class Body>
void for_blocks(size_t elements, size_t per_row, const Body& body) {
  const size_t block = kRows * per_row, blocks = (elements + block - 1) / block;
  base::parallel_for(blocks, [&](size_t unit) { body(unit * block, std::min(block, elements - unit * block)); });
}

}  // namespace

void norm_rows(const NormParameters& norm, float epsilon, std::span<const float> input, std::span<float> output) {
  const size_t d_model = norm.gain.elements();
  for_blocks(input.size(), d_model, [&](size_t first, size_t count) {
    for (size_t at = first; at < first + count; at += d_model) {
      norm_row(norm, epsilon, input.subspan(at, d_model), output.subspan(at, d_model));
    }
  });
}

void add_norm_rows(const NormParameters& norm, float epsilon, std::span<const float> input,
                   std::span<const float> residual, std::span<float> output) {
  const size_t d_model = norm.gain.elements();
  for_blocks(input.size(), d_model, [&](size_t first, size_t count) {
    for (size_t at = first; at < first + count; at += d_model) {
      const std::span<const float> x = input.subspan(at, d_model), more = residual.subspan(at, d_model);
      const std::span<float> y = output.subspan(at, d_model);
      if (is_rms(norm)) {
        for (size_t i = 0; i < d_model; ++i) y[i] = x[i] + more[i];
        norm_row(norm, epsilon, y, y);
      } else {
        kernels::add_layer_norm(x, more, kernel_parameters(norm, epsilon), y);
      }
    }
  });
}

void add_rows(std::span<const float> addend, std::span<float> sum) {
  constexpr size_t kElements = 512;
  for_blocks(sum.size(), kElements, [&](size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) sum[i] += addend[i];
  });
}

void multiply_rows(std::span<const float> factor, std::span<float> product) {
  constexpr size_t kElements = 512;
  for_blocks(product.size(), kElements, [&](size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) product[i] *= factor[i];
  });
}

}  // namespace clearhead::model
