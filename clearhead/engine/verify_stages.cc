// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/verify_stages.h"

#include <cmath>
#include <numeric>
#include <tuple>

#include "clearhead/model/embedding.h"

namespace clearhead::engine {
namespace {

using capture::Stage;
using Values = std::vector<double>;

std::vector<size_t> all_below(size_t count) {
  std::vector<size_t> indices(count);
  std::iota(indices.begin(), indices.end(), size_t{0});
  return indices;
}

// The outputs of a projection that belong to some heads, head by head.
std::vector<size_t> outputs_of(std::span<const size_t> heads, size_t dim) {
  std::vector<size_t> outputs;
  for (size_t head : heads) {
    for (size_t i = 0; i < dim; ++i) outputs.push_back(head * dim + i);
  }
  return outputs;
}

// The stages of one layer.
class Layer {
 public:
  Layer(const StageInputs& inputs, size_t layer)
      : inputs_(inputs), config_(inputs.model.config()), parameters_(inputs.model.parameters()), layer_(layer) {}

  std::optional<Bounded> recompute(Stage stage) const {
    switch (stage) {
      case Stage::token_embedding:
      case Stage::position_embedding:
      case Stage::token_type_embedding:
      case Stage::embedding: return before_layers(stage);
      case Stage::attention_input: return half_input(layer_input(), block().attention_norm);
      case Stage::rotated_query:
      case Stage::rotated_key: return rotated(stage);
      case Stage::query:
      case Stage::key:
      case Stage::value: return projection(stage);
      case Stage::head_contribution: return head_contribution();
      case Stage::attention_output: return attention_output();
      case Stage::attention_block_output:
        return half_output(layer_input_or_same(), find(Stage::attention_output), block().attention_norm,
                           block().attention_output_norm);
      case Stage::feed_forward_input:
      case Stage::feed_forward_hidden:
      case Stage::feed_forward_output: return feed_forward(stage);
      case Stage::layer_output: return layer_output();
      case Stage::logits: return logits();
      default: return std::nullopt;  // row by row: verify_layer_rows.h
    }
    return std::nullopt;
  }

 private:
  const Values* find(Stage stage) const { return inputs_.find(stage, layer_); }
  const model::BlockParameters& block() const { return parameters_.blocks[layer_]; }
  size_t seq() const { return inputs_.tokens.size(); }
  // Whether a half of the block reads its input normed.
  bool pre() const { return config_.has_final_norm(); }

  // The layer's input.
  const Values* layer_input() const {
    return layer_ == 0 ? find(Stage::embedding) : inputs_.find(Stage::layer_output, layer_ - 1);
  }

  // The same; outside pre-norm blocks attention_input is a copy of it.
  const Values* layer_input_or_same() const {
    const Values* input = layer_input();
    return input == nullptr && !pre() ? find(Stage::attention_input) : input;
  }

  // What reads stage, or what stage is a copy of outside pre-norm blocks.
  const Values* read_by_half(Stage stage, const Values* same) const {
    const Values* input = find(stage);
    return input == nullptr && !pre() ? same : input;
  }

  template <class RowOf>
  Bounded look_up(const model::EmbeddingTable& table, const RowOf& row_of) const {
    Bounded result(seq() * config_.d_model);
    std::vector<float> row(config_.d_model);
    for (size_t i = 0; i < seq(); ++i) {
      table.read(static_cast<size_t>(row_of(i)), row);
      std::copy(row.begin(), row.end(), result.values.begin() + static_cast<std::ptrdiff_t>(i * row.size()));
    }
    return result;
  }

  std::optional<Bounded> before_layers(Stage stage) const {
    const auto& tokens = inputs_.tokens;
    const bool typed = parameters_.token_type_embedding.rows() != 0;
    if (stage == Stage::token_embedding) {
      return look_up(parameters_.token_embedding, [&](size_t i) { return tokens[i].id; });
    }
    if (stage == Stage::position_embedding && config_.positions == model::Positions::none) return std::nullopt;
    if (stage == Stage::position_embedding) {
      std::vector<int64_t> ids;
      for (const auto& token : tokens) ids.push_back(token.id);
      const std::vector<size_t> rows = model::position_rows(config_, ids);
      return look_up(parameters_.position_embedding, [&](size_t i) { return rows[i]; });
    }
    if (stage == Stage::token_type_embedding) {
      if (!typed) return std::nullopt;
      return look_up(parameters_.token_type_embedding, [&](size_t i) { return tokens[i].type_id; });
    }
    const Values* token = find(Stage::token_embedding);
    const Values* position = find(Stage::position_embedding);
    const Values* type = find(Stage::token_type_embedding);
    const bool placed = config_.positions != model::Positions::none;
    if (token == nullptr || (placed && position == nullptr) || (typed && type == nullptr)) return std::nullopt;
    Values scaled = *token;
    for (double& value : scaled) value *= static_cast<double>(config_.embedding_scale);
    if (!placed && !typed) return config_.embedding_scale == 1 ? exactly(*token) : add({scaled});
    const Bounded sum = !placed ? add({scaled, *type})
                        : typed ? add({scaled, *type, *position})
                                : add({scaled, *position});
    return config_.embedding_norm ? norm(sum, parameters_.embedding_norm, config_.norm_epsilon) : sum;
  }

  // What a half of the block reads: its input, normed in a pre-norm block.
  std::optional<Bounded> half_input(const Values* x, const model::NormParameters& parameters) const {
    if (x == nullptr) return std::nullopt;
    return pre() ? norm(exactly(*x), parameters, config_.norm_epsilon) : exactly(*x);
  }

  // What a half of the block hands on: its input and what it adds, normed in a post-norm block.
  std::optional<Bounded> half_output(const Values* x, const Values* added, const model::NormParameters& parameters,
                                     const model::NormParameters& around) const {
    if (x == nullptr || added == nullptr) return std::nullopt;
    if (config_.norm_placement == model::NormPlacement::around) {
      const Bounded normed = norm(exactly(*added), around, config_.norm_epsilon);
      Bounded sum = add({*x, normed.values});
      for (size_t i = 0; i < sum.bounds.size(); ++i) sum.bounds[i] += normed.bounds[i];
      return sum;
    }
    const Bounded sum = add({*x, *added});
    const bool post = config_.norm_placement == model::NormPlacement::post;
    return post ? norm(sum, parameters, config_.norm_epsilon) : sum;
  }

  std::optional<Bounded> whole_product(const Values* input, const linear::PackedLinear& linear) const {
    if (input == nullptr) return std::nullopt;
    const std::vector<size_t> outputs = all_below(linear.out_features());
    return project(*input, seq(), {linear, outputs, 0, linear.in_features(), true});
  }

  std::optional<Bounded> projection(Stage stage) const {
    const Values* x = read_by_half(Stage::attention_input, layer_input());
    if (x == nullptr) return std::nullopt;
    const auto& attention = config_.attention;
    const auto& [linear, heads, dim] = [&] {
      struct Part {
        const linear::PackedLinear& linear;
        std::span<const size_t> heads;
        size_t dim;
      };
      if (stage == Stage::query) return Part{block().attention.query, inputs_.heads, attention.head_dim};
      if (stage == Stage::key) return Part{block().attention.key, inputs_.kv_heads, attention.head_dim};
      return Part{block().attention.value, inputs_.kv_heads, attention.value_dim};
    }();
    const std::vector<size_t> outputs = outputs_of(heads, dim);
    return project(*x, seq(), {linear, outputs, 0, linear.in_features(), true});
  }

  std::optional<Bounded> rotated(Stage stage) const {
    const model::RotaryConfig* rotary = config_.rotary_of(layer_);
    const Values* plain = find(stage == Stage::rotated_query ? Stage::query : Stage::key);
    if (rotary == nullptr || plain == nullptr) return std::nullopt;
    const bool near = config_.near.rotary && config_.is_near(layer_);
    const auto divisors = near ? std::span<const float>{} : std::span<const float>(parameters_.rotary_divisors);
    const size_t heads = stage == Stage::rotated_query ? inputs_.heads.size() : inputs_.kv_heads.size();
    Bounded prepared = exactly(*plain);
    if (config_.head_norm) {
      const auto& [query_gain, key_gain] = std::tie(block().attention.query_gain, block().attention.key_gain);
      const tensor::Tensor& gain = stage == Stage::rotated_query ? query_gain : key_gain;
      prepared = norm(prepared, {tensor::clone(gain), {}}, static_cast<double>(block().attention.head_norm_epsilon));
    }
    const size_t declared_len = inputs_.declared_len == 0 ? seq() : inputs_.declared_len;
    return turn(prepared, heads, config_.attention.head_dim,
                model::rotary_table(*rotary, declared_len, 0, seq(), divisors));
  }

  std::optional<Bounded> head_contribution() const {
    const Values* output = find(Stage::head_output);
    if (output == nullptr) return std::nullopt;
    const size_t heads = inputs_.heads.size(), dim = config_.attention.value_dim, d_model = config_.d_model;
    const std::vector<size_t> outputs = all_below(d_model);
    Bounded result(seq() * heads * d_model);
    Values part(seq() * dim);  // [seq, value_dim] of one head
    for (size_t head = 0; head < heads; ++head) {
      for (size_t at = 0; at < part.size(); ++at) part[at] = (*output)[(at / dim * heads + head) * dim + at % dim];
      const Bounded one =
          project(part, seq(), {block().attention.output, outputs, inputs_.heads[head] * dim, dim, false});
      for (size_t at = 0; at < one.values.size(); ++at) {
        const size_t into = (at / d_model * heads + head) * d_model + at % d_model;
        result.values[into] = one.values[at];
        result.bounds[into] = one.bounds[at];
      }
    }
    return result;
  }

  std::optional<Bounded> attention_output() const {
    if (inputs_.heads.size() != config_.attention.num_heads) return std::nullopt;
    return whole_product(find(Stage::head_output), block().attention.output);
  }

  std::optional<Bounded> feed_forward(Stage stage) const {
    if (config_.d_ff == 0) return std::nullopt;
    const Values* middle = find(Stage::attention_block_output);
    if (stage == Stage::feed_forward_input) {
      return half_input(config_.parallel_halves ? layer_input() : middle, block().feed_forward_norm);
    }
    if (stage == Stage::feed_forward_output) {
      return whole_product(find(Stage::feed_forward_hidden), block().feed_forward_out);
    }
    const Values* read = read_by_half(Stage::feed_forward_input, middle);
    auto product = whole_product(read, block().feed_forward_in);
    if (!product) return std::nullopt;
    if (!config_.gated) return activate(std::move(*product), config_.activation);
    return multiply(activate(*whole_product(read, block().feed_forward_gate), config_.activation), *product);
  }

  std::optional<Bounded> layer_output() const {
    const Values* middle = find(Stage::attention_block_output);
    if (middle == nullptr && !pre()) middle = find(Stage::feed_forward_input);
    if (config_.d_ff != 0) {
      return half_output(middle, find(Stage::feed_forward_output), block().feed_forward_norm,
                         block().feed_forward_output_norm);
    }
    if (middle == nullptr) return std::nullopt;
    return exactly(*middle);
  }

  std::optional<Bounded> logits() const {
    const Values* hidden = inputs_.find(Stage::layer_output, config_.num_layers - 1);
    if (hidden == nullptr || parameters_.vocabulary.rows() == 0) return std::nullopt;
    Bounded x = exactly(*hidden);
    if (config_.has_final_norm()) x = norm(x, parameters_.final_norm, config_.norm_epsilon);
    const linear::PackedLinear& map = parameters_.vocabulary.get();
    const std::vector<size_t> outputs = all_below(map.out_features());
    Bounded result = project(x.values, seq(), {map, outputs, 0, map.in_features(), true}, x.bounds);
    if (!config_.logit_soft_cap) return result;
    const double cap = static_cast<double>(*config_.logit_soft_cap);
    for (size_t i = 0; i < result.values.size(); ++i) {  // the slope is at most 1
      result.values[i] = cap * std::tanh(result.values[i] / cap);
      result.bounds[i] += 8 * kRounding * cap;
    }
    return result;
  }

  const StageInputs& inputs_;
  const model::ModelConfig& config_;
  const model::Parameters& parameters_;
  size_t layer_;
};

}  // namespace

bool is_only_shown(Stage stage) { return stage == Stage::head_contribution || stage == Stage::logits; }

std::optional<Bounded> recompute(const StageInputs& inputs, capture::Stage stage, size_t layer) {
  return Layer(inputs, layer).recompute(stage);
}

}  // namespace clearhead::engine
