// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/base/interrupt.h"
#include "clearhead/model/block.h"
#include "clearhead/model/embedding.h"
#include "clearhead/model/norm.h"
#include "clearhead/model/workspace.h"

namespace clearhead::model {
namespace {

void expect(bool fits, const std::string& expected, const std::string& found) {
  if (!fits) base::fail("model parameters", expected, found);
}

void check_rows(std::string_view name, const EmbeddingTable& table, size_t rows) {
  expect(table.rows() == rows, fmt::format("a {} of {} rows", name, rows), fmt::format("{}", table.rows()));
}

void check_norm(std::string_view name, const NormParameters& norm, size_t d_model) {
  for (const tensor::Tensor* values : {&norm.gain, &norm.bias}) {
    expect(values->elements() == d_model, fmt::format("a {} of {} numbers", name, d_model),
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
  if (config.norm_placement != NormPlacement::none) check_norm("attention norm", block.attention_norm, d_model);
  if (config.d_ff == 0) return;
  check_linear("feed_forward_in", block.feed_forward_in, config.d_ff, d_model);
  check_linear("feed_forward_out", block.feed_forward_out, d_model, config.d_ff);
  if (config.norm_placement != NormPlacement::none) check_norm("feed-forward norm", block.feed_forward_norm, d_model);
}

void check_parameters(const ModelConfig& config, const Parameters& parameters) {
  check_rows("token embedding", parameters.token_embedding, config.vocab_size);
  check_rows("token type embedding", parameters.token_type_embedding, config.type_vocab_size);
  if (config.positions == Positions::learned) {
    check_rows("position embedding", parameters.position_embedding, config.context_len);
  }
  if (config.embedding_norm) check_norm("embedding norm", parameters.embedding_norm, config.d_model);
  if (config.norm_placement == NormPlacement::pre) check_norm("final norm", parameters.final_norm, config.d_model);
  expect(parameters.blocks.size() == config.num_layers, fmt::format("{} blocks", config.num_layers),
         fmt::format("{}", parameters.blocks.size()));
  for (size_t layer = 0; layer < config.num_layers; ++layer) check_block(config, parameters.blocks[layer], layer);
}

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
    case Stage::rotated_key:
    case Stage::logits: return false;
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
  for (const BlockParameters& block : parameters_.blocks) {
    const attention::MultiHeadParameters& heads = block.attention;
    for (const linear::PackedLinear* packed :
         {&heads.query, &heads.key, &heads.value, &heads.output, &block.feed_forward_in, &block.feed_forward_out}) {
      sum += packed->bytes();
    }
    sum += norm_bytes(block.attention_norm) + norm_bytes(block.feed_forward_norm);
  }
  return sum;
}

tensor::Tensor Transformer::run(const ModelInput& input, capture::Observer* observer) const {
  Workspace workspace;
  const std::span<const float> hidden = run(input, workspace, observer);
  tensor::Tensor result({1, input.ids.size(), config_.d_model});
  std::ranges::copy(hidden, result.as<float>().begin());
  return result;
}

std::span<const float> Transformer::run(const ModelInput& input, Workspace& workspace,
                                        capture::Observer* observer) const {
  embed(config_, parameters_, input, workspace, observer);
  const size_t rows = input.ids.size();
  for (size_t layer = 0; layer < config_.num_layers; ++layer) {
    base::check_interrupt();
    run_block(config_, parameters_.blocks[layer], rows, workspace, {observer, layer});
  }
  const std::span<float> hidden = workspace.hidden.span(rows * config_.d_model);
  if (config_.norm_placement == NormPlacement::pre) {
    norm_rows(parameters_.final_norm, config_.norm_epsilon, hidden, hidden);
  }
  return hidden;
}

}  // namespace clearhead::model
