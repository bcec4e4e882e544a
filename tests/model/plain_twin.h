// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>

#include "clearhead/attention/reference_multi_head.h"
#include "clearhead/model/config.h"

namespace clearhead::model::plain {

// A transformer by plain loops in double: what the real one is compared with. Names as in Parameters.
using Values = std::vector<double>;

struct Norm {
  Values gain, bias;  // [d_model]
};

struct Block {
  attention::ReferenceParameters attention;
  attention::ReferenceProjection feed_forward_in, feed_forward_out;
  Norm attention_norm, feed_forward_norm;
};

struct Model {
  Values token_embedding, position_embedding, token_type_embedding;  // [rows, d_model]; no types: empty
  Norm embedding_norm, final_norm;
  std::vector<Block> blocks;
};

inline Values normed(const Norm& norm, double epsilon, const Values& x) {
  const size_t width = norm.gain.size();
  Values y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < width; ++i) mean += x[row + i] / static_cast<double>(width);
    for (size_t i = 0; i < width; ++i) variance += std::pow(x[row + i] - mean, 2) / static_cast<double>(width);
    for (size_t i = 0; i < width; ++i) {
      y[row + i] = (x[row + i] - mean) / std::sqrt(variance + epsilon) * norm.gain[i] + norm.bias[i];
    }
  }
  return y;
}

inline double activated(linear::Activation activation, double x) {
  if (activation == linear::Activation::gelu) return x / 2 * (1 + std::erf(x / std::numbers::sqrt2));
  if (activation == linear::Activation::gelu_tanh) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }
  if (activation == linear::Activation::silu) return x / (1 + std::exp(-x));
  return activation == linear::Activation::relu ? std::max(x, 0.0) : x;
}

inline Values projected(const attention::ReferenceProjection& projection, const Values& x, size_t inputs) {
  const size_t outputs = projection.weight.size() / inputs;
  Values y;
  for (size_t row = 0; row < x.size(); row += inputs) {
    for (size_t out = 0; out < outputs; ++out) {
      double sum = projection.bias.empty() ? 0 : projection.bias[out];
      for (size_t in = 0; in < inputs; ++in) sum += x[row + in] * projection.weight[out * inputs + in];
      y.push_back(sum);
    }
  }
  return y;
}

inline void add(Values& sum, const Values& more) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

inline Values block_output(const ModelConfig& config, const Block& block, const Values& x) {
  const bool pre = config.norm_placement == NormPlacement::pre, post = config.norm_placement == NormPlacement::post;
  const double epsilon = config.norm_epsilon;
  const size_t seq = x.size() / config.d_model;
  const Values read = pre ? normed(block.attention_norm, epsilon, x) : x;
  attention::ReferenceMultiHeadInput input{
      .batch = 1, .query_len = seq, .key_len = seq, .query = read, .key = read, .value = read, .mask = {}};
  Values h = attention::reference_multi_head_attention(config.attention, block.attention, input).attention_output;
  add(h, x);
  if (post) h = normed(block.attention_norm, epsilon, h);
  if (config.d_ff == 0) return h;
  Values wide = projected(block.feed_forward_in, pre ? normed(block.feed_forward_norm, epsilon, h) : h, config.d_model);
  for (double& value : wide) value = activated(config.activation, value);
  Values output = projected(block.feed_forward_out, wide, config.d_ff);
  add(output, h);
  return post ? normed(block.feed_forward_norm, epsilon, output) : output;
}

// Shapes: result [seq, d_model].
inline Values forward(const ModelConfig& config, const Model& model, std::span<const int64_t> ids,
                      std::span<const int64_t> types = {}) {
  const size_t width = config.d_model;
  Values x;
  for (size_t i = 0; i < ids.size(); ++i) {
    for (size_t j = 0; j < width; ++j) {
      const size_t type = types.empty() ? 0 : static_cast<size_t>(types[i]);
      x.push_back(model.token_embedding[static_cast<size_t>(ids[i]) * width + j] +
                  model.position_embedding[i * width + j] +
                  (model.token_type_embedding.empty() ? 0 : model.token_type_embedding[type * width + j]));
    }
  }
  if (config.embedding_norm) x = normed(model.embedding_norm, config.norm_epsilon, x);
  for (const Block& block : model.blocks) x = block_output(config, block, x);
  return config.norm_placement == NormPlacement::pre ? normed(model.final_norm, config.norm_epsilon, x) : x;
}

}  // namespace clearhead::model::plain
