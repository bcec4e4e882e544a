// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/multi_head_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "clearhead/attention/projection.h"
#include "clearhead/attention/sizes.h"
#include "clearhead/attention/watched.h"
#include "clearhead/base/error.h"

namespace clearhead::attention {

using capture::Stage;

namespace {

void check_past(const AttentionConfig& config, const MultiHeadInput& input) {
  if (input.past == nullptr) return;
  const bool one_text = config.causal != Causal::none && input.batch == 1 && input.sequences.size() <= 1;
  if (one_text && input.past->kept() == input.kept) return;
  base::refuse("attention", "a past of one causal sequence, kept as its keys are", "another");
}

// Keys that no later query sees.
void forget(const AttentionConfig& config, KeyValueCache& past) {
  if (!config.left_window || past.key_len() <= *config.left_window) return;
  past.evict_before((past.key_len() - *config.left_window) / kernels::kTileKeys);
}

}  // namespace

std::span<const float> attend_with_heads(const AttentionConfig& config, const MultiHeadParameters& parameters,
                                         const MultiHeadInput& input, MultiHeadWorkspace& workspace,
                                         const capture::Watch& watch) {
  config.check();
  check_past(config, input);
  if (parameters.output.in_features() != config.num_heads * config.value_dim) {
    base::refuse("attention", fmt::format("an output projection of {} heads of {}", config.num_heads, config.value_dim),
                 fmt::format("{} inputs", parameters.output.in_features()));
  }
  const size_t rows = input.batch * input.query_len, width = config.num_heads * config.value_dim;
  const Projected projected = project_inputs(config, parameters, input, workspace, watch);
  const std::span<float> head_output = workspace.head_output.span(rows * width);
  const AttentionSpans spans{head_output, workspace.row_reference.span(rows * config.num_heads),
                             workspace.row_sum.span(rows * config.num_heads)};
  AttentionConfig placed = config;
  AttentionInput attention{input.batch,   input.query_len, projected.key_len, projected.query,
                           projected.key, projected.value, input.mask,        input.sequences};
  const KeyValueCache* const caches[] = {input.past};
  if (input.past != nullptr) {
    placed.causal = Causal::offset;
    placed.key_offset = static_cast<int64_t>(input.past->key_len());
    input.past->append(projected.key, projected.value);
    attention.key_len = input.past->key_len();
    attention.key = attention.value = {};
    attention.caches = caches;
    attention.sequences = {};  // one, all of it
  }
  watched_attention(placed, attention, spans, workspace.fused, watch);
  if (input.past != nullptr) forget(config, *input.past);
  watch.show(Stage::head_output, {input.batch, input.query_len, config.num_heads, config.value_dim}, head_output);
  if (watch.wants(Stage::head_contribution)) {
    tensor::Tensor contributions({input.batch, input.query_len, config.num_heads, parameters.output.out_features()});
    head_contributions(head_output, config.num_heads, parameters.output, contributions.as<float>());
    watch.observer->observe(Stage::head_contribution, watch.layer, contributions);
  }
  return head_output;
}

void multi_head_attention(const AttentionConfig& config, const MultiHeadParameters& parameters,
                          const MultiHeadInput& input, std::span<float> attention_output, MultiHeadWorkspace& workspace,
                          const capture::Watch& watch) {
  const size_t d_model = parameters.output.out_features();
  check_size("attention_output", {input.batch, input.query_len, d_model}, attention_output.size());
  const std::span<const float> head_output = attend_with_heads(config, parameters, input, workspace, watch);
  // Heads stand side by side already: [batch, query_len, num_heads * value_dim].
  linear::linear(head_output, input.batch * input.query_len, parameters.output, attention_output, {}, input.compute);
  watch.show(Stage::attention_output, {input.batch, input.query_len, d_model}, attention_output);
}

MultiHeadOutput multi_head_attention(const AttentionConfig& config, const MultiHeadParameters& parameters,
                                     const MultiHeadInput& input, capture::Observer* observer, size_t layer) {
  MultiHeadWorkspace workspace;
  MultiHeadOutput output{tensor::Tensor({input.batch, input.query_len, parameters.output.out_features()}),
                         tensor::Tensor({input.batch, config.num_heads, input.query_len}),
                         tensor::Tensor({input.batch, config.num_heads, input.query_len})};
  multi_head_attention(config, parameters, input, output.attention_output.as<float>(), workspace, {observer, layer});
  const size_t rows = output.row_sum.elements();
  std::ranges::copy(workspace.row_reference.span(rows), output.row_reference.as<float>().begin());
  std::ranges::copy(workspace.row_sum.span(rows), output.row_sum.as<float>().begin());
  return output;
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
