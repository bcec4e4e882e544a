// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/base/interrupt.h"
#include "clearhead/base/parallel.h"
#include "clearhead/kernels/elementary.h"
#include "clearhead/linear/linear.h"
#include "clearhead/model/block.h"
#include "clearhead/model/embedding.h"
#include "clearhead/model/norm.h"
#include "clearhead/model/patch_embedding.h"
#include "clearhead/model/rotary.h"
#include "clearhead/model/workspace.h"

namespace clearhead::model {
namespace {

void expect(bool fits, const std::string& expected, const std::string& found) {
  if (!fits) base::fail("model parameters", expected, found);
}

void check_rows(std::string_view name, const EmbeddingTable& table, size_t rows) {
  expect(table.rows() == rows, fmt::format("a {} of {} rows", name, rows), fmt::format("{}", table.rows()));
}

void check_norm(std::string_view name, const ModelConfig& config, const NormParameters& norm) {
  const size_t biases = config.norm_kind == NormKind::rms ? 0 : config.d_model;
  expect(norm.gain.elements() == config.d_model, fmt::format("a {} of {} gains", name, config.d_model),
         fmt::format("{}", norm.gain.elements()));
  expect(norm.bias.elements() == biases, fmt::format("a {} of {} biases", name, biases),
         fmt::format("{}", norm.bias.elements()));
}

void check_heads(const ModelConfig& config, const attention::MultiHeadParameters& parameters) {
  const size_t gains = config.head_norm ? config.attention.head_dim : 0;
  for (const tensor::Tensor* values : {&parameters.query_gain, &parameters.key_gain}) {
    expect(values->elements() == gains, fmt::format("{} gains of query and of key", gains),
           fmt::format("{}", values->elements()));
  }
}

void check_block(const ModelConfig& config, const BlockParameters& block, size_t layer) {
  const auto check_linear = [&](std::string_view name, const linear::PackedLinear& packed, size_t out, size_t in) {
    expect(packed.out_features() == out && packed.in_features() == in,
           fmt::format("layer {}, {} [{}, {}]", layer, name, out, in),
           fmt::format("[{}, {}]", packed.out_features(), packed.in_features()));
  };
  const attention::AttentionConfig& heads = config.attention;
  const size_t d_model = config.d_model, value_width = heads.num_heads * heads.value_dim;
  check_linear("query", block.attention.query, heads.num_heads * heads.head_dim, d_model);
  check_linear("key", block.attention.key, heads.num_kv_heads * heads.head_dim, d_model);
  check_linear("value", block.attention.value, heads.num_kv_heads * heads.value_dim, d_model);
  check_linear("output", block.attention.output, d_model, value_width);
  check_heads(config, block.attention);
  const bool around = config.norm_placement == NormPlacement::around;
  if (config.norm_placement != NormPlacement::none) check_norm("attention norm", config, block.attention_norm);
  if (around) check_norm("norm of the attention output", config, block.attention_output_norm);
  if (config.d_ff == 0) return;
  if (config.gated) check_linear("feed_forward_gate", block.feed_forward_gate, config.d_ff, d_model);
  check_linear("feed_forward_in", block.feed_forward_in, config.d_ff, d_model);
  check_linear("feed_forward_out", block.feed_forward_out, d_model, config.d_ff);
  if (config.norm_placement != NormPlacement::none) check_norm("feed-forward norm", config, block.feed_forward_norm);
  if (around) check_norm("norm of the feed-forward output", config, block.feed_forward_output_norm);
}

void check_patches(const ModelConfig& config, const Parameters& parameters) {
  const size_t values = config.patches ? config.patches->patch_values() : 0;
  const size_t width = config.patches ? config.d_model : 0;
  const linear::PackedLinear& projection = parameters.patch_projection;
  expect(projection.out_features() == width && projection.in_features() == values,
         fmt::format("a patch projection [{}, {}]", width, values),
         fmt::format("[{}, {}]", projection.out_features(), projection.in_features()));
  const size_t registers = config.patches ? config.patches->registers : 0;
  expect(parameters.class_token.elements() == width, fmt::format("a class token of {}", width),
         fmt::format("{}", parameters.class_token.elements()));
  expect(parameters.register_tokens.elements() == registers * width,
         fmt::format("{} registers of {}", registers, width),
         fmt::format("{} values", parameters.register_tokens.elements()));
}

void check_parameters(const ModelConfig& config, const Parameters& parameters) {
  check_patches(config, parameters);
  check_rows("token embedding", parameters.token_embedding, config.vocab_size);
  check_rows("token type embedding", parameters.token_type_embedding, config.type_vocab_size);
  if (config.positions == Positions::learned) {
    check_rows("position embedding", parameters.position_embedding, config.position_rows());
  }
  if (config.embedding_norm) check_norm("embedding norm", config, parameters.embedding_norm);
  if (config.has_final_norm()) check_norm("final norm", config, parameters.final_norm);
  expect(parameters.vocabulary.rows() == 0 || parameters.vocabulary.d_model() == config.d_model,
         fmt::format("a vocabulary map of {} inputs", config.d_model),
         fmt::format("{}", parameters.vocabulary.d_model()));
  const size_t divisors = parameters.rotary_divisors.size();
  expect(divisors == 0 || (config.rotary && divisors == config.rotary->dim / 2), "a divisor for each rotary pair",
         fmt::format("{}", divisors));
  expect(parameters.blocks.size() == config.num_layers, fmt::format("{} blocks", config.num_layers),
         fmt::format("{}", parameters.blocks.size()));
  for (size_t layer = 0; layer < config.num_layers; ++layer) check_block(config, parameters.blocks[layer], layer);
}

// The turns of all layers for one run: those of each text are those that it has alone.
class Turns {
 public:
  // declared_len: of the only text; 0: each text has its own.
  Turns(const ModelConfig& config, const Parameters& parameters, const Workspace& workspace, size_t declared_len)
      : config_(config), declared_len_(declared_len) {
    if (config.rotary) far_ = tables(*config.rotary, workspace, parameters.rotary_divisors);
    if (config.near.rotary) near_ = tables(*config.near.rotary, workspace, {});
  }

  attention::RotaryTurns of(size_t layer) const {
    const RotaryConfig* rotary = config_.rotary_of(layer);
    if (rotary == nullptr) return {};
    const RotaryTable& table = config_.near.rotary && rotary == &*config_.near.rotary ? near_ : far_;
    return {table.layout, rotary->dim / 2, table.cosines.as<float>(), table.sines.as<float>()};
  }

 private:
  RotaryTable tables(const RotaryConfig& rotary, const Workspace& workspace, std::span<const float> divisors) const {
    const size_t rows = workspace.positions.size(), pairs = rotary.dim / 2;
    const auto table = [&](size_t first, size_t count) {
      return rotary_table(rotary, declared_len_ == 0 ? first + count : declared_len_, first, count, divisors);
    };
    if (workspace.sequences.size() == 1) return table(workspace.positions[0], rows);
    RotaryTable all{rotary.layout, tensor::Tensor(tensor::Shape{rows, pairs}),
                    tensor::Tensor(tensor::Shape{rows, pairs})};
    for (const attention::Sequence& text : workspace.sequences) {
      const size_t first = text.query_begin;
      const RotaryTable one = table(workspace.positions[first], text.query_len);
      std::ranges::copy(one.cosines.as<float>(), all.cosines.as<float>().subspan(first * pairs).begin());
      std::ranges::copy(one.sines.as<float>(), all.sines.as<float>().subspan(first * pairs).begin());
    }
    return all;
  }

  const ModelConfig& config_;
  size_t declared_len_;
  RotaryTable far_, near_;
};

}  // namespace

Transformer::Transformer(ModelConfig config, Parameters parameters)
    : config_(std::move(config)), parameters_(std::move(parameters)) {
  config_.check();
  check_parameters(config_, parameters_);
}

bool Transformer::has(capture::Stage stage) const {
  using capture::Stage;
  switch (stage) {
    case Stage::rotated_query:
    case Stage::rotated_key: return config_.rotary.has_value();
    case Stage::logits: return parameters_.vocabulary.rows() != 0;
    case Stage::position_embedding: return config_.positions != Positions::none;
    case Stage::token_type_embedding: return config_.type_vocab_size != 0;
    case Stage::feed_forward_input:
    case Stage::feed_forward_hidden:
    case Stage::feed_forward_output: return config_.d_ff != 0;
    default: return true;
  }
}

size_t Transformer::resident_bytes() const {
  const auto norm_bytes = [](const NormParameters& norm) {
    return norm.gain.bytes().size() + norm.bias.bytes().size();
  };
  size_t sum = norm_bytes(parameters_.embedding_norm) + norm_bytes(parameters_.final_norm);
  sum += parameters_.vocabulary.resident_bytes() + parameters_.patch_projection.bytes();
  sum += parameters_.class_token.bytes().size() + parameters_.register_tokens.bytes().size();
  for (const BlockParameters& block : parameters_.blocks) {
    const attention::MultiHeadParameters& heads = block.attention;
    for (const linear::PackedLinear* packed :
         {&heads.query, &heads.key, &heads.value, &heads.output, &block.feed_forward_gate, &block.feed_forward_in,
          &block.feed_forward_out}) {
      sum += packed->bytes();
    }
    sum += norm_bytes(block.attention_norm) + norm_bytes(block.feed_forward_norm);
    sum += norm_bytes(block.attention_output_norm) + norm_bytes(block.feed_forward_output_norm);
  }
  return sum;
}

tensor::Tensor Transformer::run(const ModelInput& input, capture::Observer* observer) const {
  Workspace workspace;
  const std::span<const float> hidden = run(input, workspace, observer);
  tensor::Tensor result({1, input.rows(config_), config_.d_model});
  std::ranges::copy(hidden, result.as<float>().begin());
  return result;
}

std::span<const float> Transformer::run(const ModelInput& input, Workspace& workspace,
                                        capture::Observer* observer) const {
  if (config_.patches) {
    embed_image(config_, parameters_, input, workspace, observer);
  } else {
    embed(config_, parameters_, input, workspace, observer);
  }
  const Turns turns(config_, parameters_, workspace, input.declared_len);
  const size_t rows = input.rows(config_);
  for (size_t layer = 0; layer < config_.num_layers; ++layer) {
    base::check_interrupt();
    attention::KeyValueCache* past = input.cache == nullptr ? nullptr : &input.cache->layer(layer);
    run_block({config_, turns.of(layer), past, input.keys_kept(), input.compute}, parameters_.blocks[layer], rows,
              workspace, {observer, layer});
  }
  const std::span<float> hidden = workspace.hidden.span(rows * config_.d_model);
  if (config_.has_final_norm()) norm_rows(parameters_.final_norm, config_.norm_epsilon, hidden, hidden);
  if (observer != nullptr && has(capture::Stage::logits) && observer->wants(capture::Stage::logits, 0)) {
    observer->observe(capture::Stage::logits, 0, logits(hidden));
  }
  return hidden;
}

tensor::Tensor Transformer::logits(std::span<const float> hidden) const {
  const VocabularyMap& map = parameters_.vocabulary;
  expect(map.rows() != 0, "a model with a head over the vocabulary", "one without");
  const size_t rows = hidden.size() / config_.d_model;
  tensor::Tensor logits(tensor::Shape{1, rows, map.rows()});
  const std::span<float> values = logits.as<float>();
  linear::linear(hidden, rows, map.get(), values);
  if (config_.logit_soft_cap) {
    const float cap = *config_.logit_soft_cap;
    base::parallel_for(rows, [&](size_t row) {
      const std::span<float> one = values.subspan(row * map.rows(), map.rows());
      for (float& logit : one) logit /= cap;
      kernels::tanh(one, one);
      for (float& logit : one) logit *= cap;
    });
  }
  return logits;
}

}  // namespace clearhead::model
