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

// One row (sequence, head, query) of the computation.
class Row {
 public:
  Row(const AttentionConfig& config, const ReferenceInput& input)
      : config_(config),
        input_(input),
        scale_(config.scale ? *config.scale : 1.0 / std::sqrt(static_cast<double>(config.head_dim))) {}

  void compute(const Sequence& sequence, size_t head, size_t query, ReferenceOutput& output) {
    const ScoreIndex index{config_.num_heads, input_.query_len, input_.key_len};
    const size_t at = sequence.query_begin + query, row = index.row(sequence.batch, head, at);
    const size_t start = index.start(sequence.batch, head, at) + sequence.key_begin, len = sequence.key_len;
    const size_t query_row = (sequence.batch * input_.query_len + at) * config_.num_heads + head;
    first_key_ = sequence.batch * input_.key_len + sequence.key_begin;
    kv_head_ = config_.kv_head_of(head);
    read_biases(sequence, head, query);
    const auto [begin, end] = visible_keys(config_, sequence, query);
    double largest = kUnseen;
    for (size_t j = 0; j < len; ++j) {
      const double raw = dot(query_row * config_.head_dim, j);
      const double score = begin <= j && j < end && visible_[j] ? capped(scale_ * raw) + bias_[j] : kUnseen;
      output.raw_scores[start + j] = raw;
      output.scores[start + j] = score;
      if (!(score <= largest)) largest = score;
    }
    if (largest == kUnseen) return;
    if (!config_.sinks.empty()) largest = std::max(largest, double{config_.sinks[head]});
    output.row_reference[row] = std::ceil(largest * std::numbers::log2e);
    output.row_sum[row] = config_.sinks.empty() ? 0 : power(double{config_.sinks[head]}, output.row_reference[row]);
    weigh({output.scores.data() + start, len}, output.row_reference[row], output.row_sum[row],
          {output.weights.data() + start, len},
          {output.head_output.data() + query_row * config_.value_dim, config_.value_dim});
  }

 private:
  void read_biases(const Sequence& sequence, size_t head, size_t query) {
    visible_.assign(sequence.key_len, 1);
    bias_.assign(sequence.key_len, 0.0);
    if (input_.mask.present()) {
      input_.mask.read_row({sequence.batch, head, sequence.query_begin + query}, sequence.key_begin, visible_, bias_);
    }
    const int64_t position = position_of(config_, sequence, query);
    for (size_t j = 0; j < sequence.key_len && !config_.alibi_slopes.empty(); ++j) {
      bias_[j] += double{config_.alibi_slopes[head]} * static_cast<double>(static_cast<int64_t>(j) - position);
    }
  }

  double capped(double score) const {
    return config_.soft_cap ? *config_.soft_cap * std::tanh(score / *config_.soft_cap) : score;
  }

  static double power(double score, double reference) { return std::exp2(score * std::numbers::log2e - reference); }

  double dot(size_t query_start, size_t key) const {
    const size_t key_start = ((first_key_ + key) * config_.num_kv_heads + kv_head_) * config_.head_dim;
    double sum = 0;
    for (size_t i = 0; i < config_.head_dim; ++i) sum += input_.query[query_start + i] * input_.key[key_start + i];
    return sum;
  }

  // Adds to the sum what it is given with.
  void weigh(std::span<const double> scores, double reference, double& sum, std::span<double> weights,
             std::span<double> output) const {
    for (size_t j = 0; j < scores.size(); ++j) {
      if (scores[j] == kUnseen) continue;
      weights[j] = power(scores[j], reference);
      sum += weights[j];
    }
    for (size_t j = 0; j < scores.size(); ++j) {
      if (scores[j] == kUnseen) continue;
      weights[j] /= sum;
      const size_t start = ((first_key_ + j) * config_.num_kv_heads + kv_head_) * config_.value_dim;
      for (size_t i = 0; i < output.size(); ++i) output[i] += weights[j] * input_.value[start + i];
    }
  }

  const AttentionConfig& config_;
  const ReferenceInput& input_;
  double scale_;
  std::vector<uint8_t> visible_;        // [keys of the sequence]
  std::vector<double> bias_;            // [keys of the sequence]
  size_t first_key_ = 0, kv_head_ = 0;  // the row of [batch, key_len] where the sequence's keys begin
};

}  // namespace

ReferenceOutput reference_attention(const AttentionConfig& config, const ReferenceInput& input) {
  config.check();
  check_size("query", {input.batch, input.query_len, config.num_heads, config.head_dim}, input.query.size());
  check_size("key", {input.batch, input.key_len, config.num_kv_heads, config.head_dim}, input.key.size());
  check_size("value", {input.batch, input.key_len, config.num_kv_heads, config.value_dim}, input.value.size());
  const auto sequences = sequences_of(config, {input.batch, input.query_len, input.key_len}, input.sequences);
  const size_t rows = tensor::Shape{input.batch, config.num_heads, input.query_len}.elements();
  const size_t scores = tensor::Shape{rows, input.key_len}.elements();
  ReferenceOutput output;
  output.raw_scores.resize(scores);
  output.scores.resize(scores, kUnseen);
  output.weights.resize(scores);
  output.row_reference.resize(rows, kUnseen);
  output.row_sum.resize(rows);
  output.head_output.resize(tensor::Shape{rows, config.value_dim}.elements());
  Row row(config, input);
  for (const Sequence& sequence : sequences) {
    for (size_t head = 0; head < config.num_heads; ++head) {
      for (size_t query = 0; query < sequence.query_len; ++query) row.compute(sequence, head, query, output);
    }
  }
  return output;
}

}  // namespace clearhead::attention
