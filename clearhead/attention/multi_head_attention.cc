// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/multi_head_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "clearhead/attention/fused.h"
#include "clearhead/attention/projection.h"
#include "clearhead/base/error.h"

namespace clearhead::attention {

using capture::Stage;

MultiHeadOutput multi_head_attention(const AttentionConfig& config, const MultiHeadParameters& parameters,
                                     const MultiHeadInput& input, capture::Observer* observer, size_t layer) {
  config.check();
  if (parameters.output.in_features() != config.num_heads * config.value_dim) {
    base::refuse("attention", fmt::format("an output projection of {} heads of {}", config.num_heads, config.value_dim),
                 fmt::format("{} inputs", parameters.output.in_features()));
  }
  const auto wants = [&](Stage stage) { return observer != nullptr && observer->wants(stage, layer); };
  const Projected projected = project_inputs(config, parameters, input, observer, layer);
  AttentionOutput attended =
      watched_attention(config,
                        {input.batch, input.query_len, projected.key.shape()[1], projected.query.as<float>(),
                         projected.key.as<float>(), projected.value.as<float>(), input.mask},
                        observer, layer);
  if (wants(Stage::head_output)) observer->observe(Stage::head_output, layer, attended.head_output);
  if (wants(Stage::head_contribution)) {
    observer->observe(Stage::head_contribution, layer, head_contributions(attended.head_output, parameters.output));
  }

  // Heads stand side by side already: [batch, query_len, num_heads * value_dim].
  tensor::Tensor output({input.batch, input.query_len, parameters.output.out_features()});
  linear::linear(std::as_const(attended.head_output).as<float>(), input.batch * input.query_len, parameters.output,
                 output.as<float>());
  if (wants(Stage::attention_output)) observer->observe(Stage::attention_output, layer, output);
  return {std::move(output), std::move(attended.row_reference), std::move(attended.row_sum)};
}

tensor::Tensor block_diagonal(const tensor::TensorView& squares) {
  const tensor::Shape& shape = squares.shape();
  if (shape.rank() != 3 || shape[1] != shape[2]) {
    base::refuse("block_diagonal", "squares [num_heads, head_dim, head_dim]", shape.text());
  }
  const size_t heads = shape[0], head_dim = shape[1], width = heads * head_dim;
  const size_t element = tensor::size_of(squares.dtype());  // bytes
  tensor::Tensor matrix(squares.dtype(), {width, width});
  for (size_t row = 0; row < width && head_dim > 0; ++row) {
    const auto from = squares.bytes().subspan(row * head_dim * element, head_dim * element);
    const size_t column = row / head_dim * head_dim;
    std::copy(from.begin(), from.end(),
              matrix.bytes().begin() + static_cast<std::ptrdiff_t>((row * width + column) * element));
  }
  return matrix;
}

}  // namespace clearhead::attention
