// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "clearhead/attention/sizes.h"

namespace clearhead::attention {
namespace {

constexpr double kUnseen = -std::numeric_limits<double>::infinity();

// One row (batch, head, query) of the computation.
class Row {
 public:
  Row(const AttentionConfig& config, const ReferenceInput& input) : config_(config), input_(input) {
    visible_.resize(input.key_len, 1);
    bias_.resize(input.key_len, 0.0);
  }

  void compute(size_t batch, size_t head, size_t query, ReferenceOutput& output) {
    batch_ = batch;
    kv_head_ = config_.kv_head_of(head);
    const ScoreIndex index{config_.num_heads, input_.query_len, input_.key_len};
    const size_t row = index.row(batch, head, query), start = index.start(batch, head, query);
    if (input_.mask.present()) input_.mask.read_row({batch, head, query}, 0, visible_, bias_);
    const double scale = config_.scale ? *config_.scale : 1.0 / std::sqrt(static_cast<double>(config_.head_dim));
    const size_t end = causal_end(config_, query, input_.key_len);
    double largest = kUnseen;
    for (size_t j = 0; j < input_.key_len; ++j) {
      const double raw = dot(((batch * input_.query_len + query) * config_.num_heads + head) * config_.head_dim, j);
      const double score = j < end && visible_[j] ? scale * raw + bias_[j] : kUnseen;
      output.raw_scores[start + j] = raw;
      output.scores[start + j] = score;
      if (!(score <= largest)) largest = score;
    }
    output.row_reference[row] = std::ceil(largest * std::numbers::log2e);
    const size_t output_start = ((batch * input_.query_len + query) * config_.num_heads + head) * config_.value_dim;
    weigh({output.scores.data() + start, input_.key_len}, output.row_reference[row], output.row_sum[row],
          {output.weights.data() + start, input_.key_len},
          {output.head_output.data() + output_start, config_.value_dim});
  }

 private:
  double dot(size_t query_start, size_t key) const {
    const size_t key_start = ((batch_ * input_.key_len + key) * config_.num_kv_heads + kv_head_) * config_.head_dim;
    double sum = 0;
    for (size_t i = 0; i < config_.head_dim; ++i) sum += input_.query[query_start + i] * input_.key[key_start + i];
    return sum;
  }

  void weigh(std::span<const double> scores, double reference, double& sum, std::span<double> weights,
             std::span<double> output) const {
    sum = 0;
    for (size_t j = 0; j < scores.size(); ++j) {
      if (scores[j] == kUnseen) continue;
      weights[j] = std::exp2(scores[j] * std::numbers::log2e - reference);
      sum += weights[j];
    }
    for (size_t j = 0; j < scores.size(); ++j) {
      if (scores[j] == kUnseen) continue;
      weights[j] /= sum;
      const size_t start = ((batch_ * input_.key_len + j) * config_.num_kv_heads + kv_head_) * config_.value_dim;
      for (size_t i = 0; i < output.size(); ++i) output[i] += weights[j] * input_.value[start + i];
    }
  }

  const AttentionConfig& config_;
  const ReferenceInput& input_;
  std::vector<uint8_t> visible_;  // [key_len]
  std::vector<double> bias_;      // [key_len]
  size_t batch_ = 0, kv_head_ = 0;
};

}  // namespace

ReferenceOutput reference_attention(const AttentionConfig& config, const ReferenceInput& input) {
  config.check();
  check_size("query", {input.batch, input.query_len, config.num_heads, config.head_dim}, input.query.size());
  check_size("key", {input.batch, input.key_len, config.num_kv_heads, config.head_dim}, input.key.size());
  check_size("value", {input.batch, input.key_len, config.num_kv_heads, config.value_dim}, input.value.size());
  const size_t rows = tensor::Shape{input.batch, config.num_heads, input.query_len}.elements();
  const size_t scores = tensor::Shape{rows, input.key_len}.elements();
  ReferenceOutput output;
  output.raw_scores.resize(scores);
  output.scores.resize(scores);
  output.weights.resize(scores);
  output.row_reference.resize(rows);
  output.row_sum.resize(rows);
  output.head_output.resize(tensor::Shape{rows, config.value_dim}.elements());
  Row row(config, input);
  for (size_t batch = 0; batch < input.batch; ++batch) {
    for (size_t head = 0; head < config.num_heads; ++head) {
      for (size_t query = 0; query < input.query_len; ++query) row.compute(batch, head, query, output);
    }
  }
  return output;
}

}  // namespace clearhead::attention
