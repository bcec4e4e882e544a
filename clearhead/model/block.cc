// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/block.h"

#include <span>
#include <utility>

#include "clearhead/attention/multi_head_attention.h"
#include "clearhead/linear/linear.h"
#include "clearhead/model/norm.h"

namespace clearhead::model {
namespace {

using capture::Stage;

// Shows stages of one layer to somebody who may not be there.
struct Watch {
  capture::Observer* observer;
  size_t layer;

  void show(Stage stage, const tensor::Tensor& values) const {
    if (observer != nullptr && observer->wants(stage, layer)) observer->observe(stage, layer, values);
  }
};

// What a half of the block reads: its input, in a pre-norm block normed into storage.
const tensor::Tensor& half_input(const ModelConfig& config, const NormParameters& norm, const tensor::Tensor& input,
                                 tensor::Tensor& storage) {
  if (config.norm_placement != NormPlacement::pre) return input;
  storage = tensor::Tensor(input.shape());
  norm_rows(norm, config.norm_epsilon, input, storage);
  return storage;
}

// What a half of the block hands on: output += input, in a post-norm block normed.
void finish_half(const ModelConfig& config, const NormParameters& norm, const tensor::Tensor& input,
                 tensor::Tensor& output) {
  if (config.norm_placement == NormPlacement::post) {
    return add_norm_rows(norm, config.norm_epsilon, output, input, output);
  }
  const std::span<float> sum = output.as<float>();
  const std::span<const float> addend = input.as<float>();
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += addend[i];
}

tensor::Tensor attend(const ModelConfig& config, const BlockParameters& parameters, const tensor::Tensor& input,
                      const Watch& watch) {
  watch.show(Stage::attention_input, input);
  const size_t seq_len = input.shape()[1];
  const std::span<const float> x = input.as<float>();
  const attention::MultiHeadInput same{
      .batch = 1, .query_len = seq_len, .key_len = seq_len, .query = x, .key = x, .value = x, .mask = {}};
  return attention::multi_head_attention(config.attention, parameters.attention, same, watch.observer, watch.layer)
      .attention_output;
}

tensor::Tensor feed_forward(const ModelConfig& config, const BlockParameters& parameters, const tensor::Tensor& input,
                            const Watch& watch) {
  watch.show(Stage::feed_forward_input, input);
  const size_t seq_len = input.shape()[1];
  tensor::Tensor hidden(tensor::Shape{1, seq_len, config.d_ff});
  linear::linear(input.as<float>(), seq_len, parameters.feed_forward_in, hidden.as<float>(),
                 {.activation = config.activation, .residual = nullptr});
  watch.show(Stage::feed_forward_hidden, hidden);
  tensor::Tensor output(input.shape());
  linear::linear(std::as_const(hidden).as<float>(), seq_len, parameters.feed_forward_out, output.as<float>());
  watch.show(Stage::feed_forward_output, output);
  return output;
}

}  // namespace

tensor::Tensor run_block(const ModelConfig& config, const BlockParameters& parameters, const tensor::Tensor& input,
                         capture::Observer* observer, size_t layer) {
  const Watch watch{observer, layer};
  tensor::Tensor storage;

  tensor::Tensor attended =
      attend(config, parameters, half_input(config, parameters.attention_norm, input, storage), watch);
  finish_half(config, parameters.attention_norm, input, attended);
  watch.show(Stage::attention_block_output, attended);
  if (config.d_ff == 0) {
    watch.show(Stage::layer_output, attended);
    return attended;
  }

  tensor::Tensor output =
      feed_forward(config, parameters, half_input(config, parameters.feed_forward_norm, attended, storage), watch);
  finish_half(config, parameters.feed_forward_norm, attended, output);
  watch.show(Stage::layer_output, output);
  return output;
}

}  // namespace clearhead::model
