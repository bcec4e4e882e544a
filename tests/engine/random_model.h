// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "clearhead/capture/recorder.h"
#include "clearhead/model/embedding.h"
#include "clearhead/model/transformer.h"
#include "tests/support/hashed_values.h"

namespace clearhead::tests {

// Draws the parameters of small models, each tensor from a stream of its own.
class RandomParameters {
 public:
  tensor::Tensor tensor(tensor::Shape shape, float factor, float middle = 0) {
    tensor::Tensor result(std::move(shape));
    const std::vector<float> values = hashed_values(stream_++, result.elements(), factor);
    std::ranges::transform(values, result.as<float>().begin(), [middle](float value) { return value + middle; });
    return result;
  }

  linear::PackedLinear linear(size_t out, size_t in, bool biased) {
    const tensor::Tensor weight = tensor({out, in}, 0.6f), bias = tensor({out}, 0.5f);
    return biased ? linear::PackedLinear(weight, bias.view()) : linear::PackedLinear(weight);
  }

  model::NormParameters norm(size_t d_model, model::NormKind kind = model::NormKind::layer) {
    if (kind == model::NormKind::rms) return {tensor({d_model}, 0.4f, 1), {}};
    return {tensor({d_model}, 0.4f, 1), tensor({d_model}, 0.3f)};
  }
  model::NormParameters norm(const model::ModelConfig& config) { return norm(config.d_model, config.norm_kind); }

  model::EmbeddingTable table(size_t rows, size_t d_model) {
    const auto values = std::make_shared<tensor::Tensor>(tensor({rows, d_model}, 1));
    return {rows, [values, d_model](size_t id, std::span<float> row) {
              std::ranges::copy(values->as<float>().subspan(id * d_model, d_model), row.begin());
            }};
  }

 private:
  uint64_t stream_ = 1;
};

inline model::BlockParameters random_block(RandomParameters& draw, const model::ModelConfig& config) {
  const auto& attention = config.attention;
  const bool biased = config.d_ff != 0, normed = config.norm_placement != model::NormPlacement::none;
  const bool around = config.norm_placement == model::NormPlacement::around;
  const size_t d_model = config.d_model;
  model::BlockParameters block;
  block.attention.query = draw.linear(attention.num_heads * attention.head_dim, d_model, biased);
  block.attention.key = draw.linear(attention.num_kv_heads * attention.head_dim, d_model, biased);
  block.attention.value = draw.linear(attention.num_kv_heads * attention.value_dim, d_model, biased);
  block.attention.output = draw.linear(d_model, attention.num_heads * attention.value_dim, biased);
  if (config.head_norm) block.attention.query_gain = draw.tensor({attention.head_dim}, 0.4f, 1);
  if (config.head_norm) block.attention.key_gain = draw.tensor({attention.head_dim}, 0.4f, 1);
  if (normed) block.attention_norm = draw.norm(config);
  if (around) block.attention_output_norm = draw.norm(config);
  if (config.d_ff == 0) return block;
  if (config.gated) block.feed_forward_gate = draw.linear(config.d_ff, d_model, false);
  block.feed_forward_in = draw.linear(config.d_ff, d_model, true);
  block.feed_forward_out = draw.linear(d_model, config.d_ff, true);
  if (normed) block.feed_forward_norm = draw.norm(config);
  if (around) block.feed_forward_output_norm = draw.norm(config);
  return block;
}

// A model of this config; attention-only models are without biases, models without position vectors have a head over
// the vocabulary.
inline model::Transformer random_model(const model::ModelConfig& config) {
  RandomParameters draw;
  const size_t d_model = config.d_model;
  model::Parameters parameters;
  parameters.token_embedding = draw.table(config.vocab_size, d_model);
  if (config.positions == model::Positions::learned) {
    parameters.position_embedding = draw.table(config.context_len, d_model);
  } else if (config.positions == model::Positions::sinusoidal) {
    parameters.position_embedding = model::sinusoidal_positions(d_model);
  } else {
    const auto rows = std::make_shared<const tensor::Tensor>(draw.tensor({config.vocab_size, d_model}, 0.6f));
    parameters.vocabulary = {config.vocab_size, d_model, [rows] { return linear::PackedLinear(*rows); }};
  }
  if (config.type_vocab_size != 0) parameters.token_type_embedding = draw.table(config.type_vocab_size, d_model);
  if (config.embedding_norm) parameters.embedding_norm = draw.norm(config);
  if (config.has_final_norm()) parameters.final_norm = draw.norm(config);
  for (size_t layer = 0; layer < config.num_layers; ++layer) parameters.blocks.push_back(random_block(draw, config));
  return {config, std::move(parameters)};
}

// Encoder of two layers in the manner of BERT.
inline model::ModelConfig encoder_config() {
  model::ModelConfig config;
  config.family = "test";
  config.vocab_size = 30;
  config.type_vocab_size = 2;
  config.context_len = 300;
  config.num_layers = 2;
  config.d_model = 20;
  config.d_ff = 33;
  config.embedding_norm = true;
  config.attention.num_heads = config.attention.num_kv_heads = 4;
  config.attention.head_dim = config.attention.value_dim = 5;
  return config;
}

// Decoder of two layers with pre-norm blocks, grouped heads, values of another width and a scale of its own.
inline model::ModelConfig decoder_config() {
  model::ModelConfig config = encoder_config();
  config.type_vocab_size = 0;
  config.embedding_norm = false;
  config.norm_placement = model::NormPlacement::pre;
  config.activation = linear::Activation::gelu_tanh;
  config.attention.num_kv_heads = 2;
  config.attention.value_dim = 7;
  config.attention.scale = 0.7f;
  config.attention.causal = attention::Causal::top_left;
  return config;
}

// Decoder of two layers in the manner of Llama, with normed queries and keys and a near layer of other rotary
// positions.
inline model::ModelConfig rotary_config() {
  model::ModelConfig config = decoder_config();
  config.positions = model::Positions::none;
  config.norm_kind = model::NormKind::rms;
  config.norm_epsilon = 1e-5f;
  config.activation = linear::Activation::silu;
  config.gated = true;
  config.head_norm = true;
  config.attention.head_dim = 6;
  config.attention.value_dim = 5;
  config.rotary = model::RotaryConfig{.dim = 6, .base = 50};
  config.near = {.is_near = {true, false}, .left_window = 2, .rotary = model::RotaryConfig{.dim = 4, .base = 20}};
  return config;
}

// Attention alone, without norms, biases or learned positions.
inline model::ModelConfig attention_only_config() {
  model::ModelConfig config = encoder_config();
  config.type_vocab_size = 0;
  config.embedding_norm = false;
  config.context_len = 0;
  config.num_layers = 1;
  config.d_ff = 0;
  config.positions = model::Positions::sinusoidal;
  config.norm_placement = model::NormPlacement::none;
  return config;
}

// A run over seq tokens, with what selection names.
inline capture::Trace record(const model::Transformer& transformer, size_t seq, capture::Selection selection) {
  const model::ModelConfig& config = transformer.config();
  capture::TraceInfo info;
  info.model = "random";
  info.text = "no text";
  info.attention = config.attention.json();
  info.num_layers = config.num_layers;
  info.num_heads = config.attention.num_heads;
  std::vector<int64_t> ids, types;
  for (size_t i = 0; i < seq; ++i) {
    capture::TraceToken token;
    token.text = token.piece = "t";
    token.id = static_cast<int64_t>((7 * i + 3) % config.vocab_size);
    token.type_id = config.type_vocab_size == 0 ? 0 : static_cast<int64_t>(i % config.type_vocab_size);
    ids.push_back(token.id);
    types.push_back(token.type_id);
    info.tokens.push_back(std::move(token));
  }
  capture::Recorder recorder(std::move(selection), std::move(info), config.attention.num_kv_heads);
  transformer.run({ids, types}, &recorder);
  return std::move(recorder).take();
}

inline capture::Selection everything() { return {capture::parse_stages("all"), std::nullopt, std::nullopt}; }

}  // namespace clearhead::tests
