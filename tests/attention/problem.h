// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <span>
#include <vector>

#include "clearhead/attention/exact.h"
#include "clearhead/attention/fused.h"
#include "clearhead/attention/reference.h"
#include "tests/support/hashed_values.h"
#include "tests/support/stage_collector.h"

namespace clearhead::tests {

struct ProblemSizes {
  size_t batch = 1, query_len = 1, key_len = 1, num_heads = 1, num_kv_heads = 1, head_dim = 1, value_dim = 1;
};

// An attention problem with reproducible numbers; what a test changes, it changes in the fields.
struct Problem {
  attention::AttentionConfig config;
  size_t batch, query_len, key_len;
  std::vector<float> query, key, value;
  tensor::Tensor mask_values;  // what mask refers to
  attention::Mask mask;
  std::vector<attention::Sequence> sequences;

  explicit Problem(const ProblemSizes& sizes, uint64_t seed = 1, float factor = 2.0f)
      : batch(sizes.batch), query_len(sizes.query_len), key_len(sizes.key_len) {
    config.num_heads = sizes.num_heads;
    config.num_kv_heads = sizes.num_kv_heads;
    config.head_dim = sizes.head_dim;
    config.value_dim = sizes.value_dim;
    query = hashed_values(seed * 8, batch * query_len * config.num_heads * config.head_dim, factor);
    key = hashed_values(seed * 8 + 1, batch * key_len * config.num_kv_heads * config.head_dim, factor);
    value = hashed_values(seed * 8 + 2, batch * key_len * config.num_kv_heads * config.value_dim);
  }

  // The same numbers, without the mask.
  Problem copy() const {
    Problem other(ProblemSizes{});
    other.config = config;
    other.batch = batch;
    other.query_len = query_len;
    other.key_len = key_len;
    other.query = query;
    other.key = key;
    other.value = value;
    other.sequences = sequences;
    return other;
  }

  void set_mask(const std::vector<float>& values, tensor::Shape shape) {
    mask_values = tensor::Tensor(std::move(shape));
    std::copy(values.begin(), values.end(), mask_values.as<float>().begin());
    mask = attention::Mask(mask_values, {batch, config.num_heads, query_len, key_len});
  }
  void set_mask(const std::vector<bool>& values, tensor::Shape shape) {
    mask_values = tensor::Tensor(tensor::DType::bool_, std::move(shape));
    std::copy(values.begin(), values.end(), mask_values.as<bool>().begin());
    mask = attention::Mask(mask_values, {batch, config.num_heads, query_len, key_len});
  }

  attention::AttentionInput input() const { return {batch, query_len, key_len, query, key, value, mask, sequences}; }
  attention::AttentionOutput run(capture::Observer* observer = nullptr) const {
    return attention::exact_attention(config, input(), observer);
  }
  attention::ReferenceOutput reference() const {
    const std::vector<double> q(query.begin(), query.end()), k(key.begin(), key.end()), v(value.begin(), value.end());
    return attention::reference_attention(config, {batch, query_len, key_len, q, k, v, mask, sequences});
  }
};

// Keeps every stage that is shown.
class Everything : public StageCollector {
 public:
  Everything() : StageCollector(all_stages()) {}
  std::span<const float> values(capture::Stage stage) const { return get(stage).as<float>(); }

 private:
  static std::set<capture::Stage> all_stages() {
    std::set<capture::Stage> stages;
    for (const capture::StageInfo& info : capture::stages()) stages.insert(info.stage);
    return stages;
  }
};

inline std::vector<float> floats(const tensor::Tensor& values) {
  return {values.as<float>().begin(), values.as<float>().end()};
}

// Head output, row references and row sums, one behind the other.
inline std::vector<float> all_bits(const attention::AttentionOutput& output) {
  std::vector<float> all = floats(output.head_output);
  for (const tensor::Tensor* rows : {&output.row_reference, &output.row_sum}) {
    all.insert(all.end(), rows->as<float>().begin(), rows->as<float>().end());
  }
  return all;
}

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// One head of dimension 1 whose scores are all 0, so that every visible key weighs the same.
inline Problem equal_scores(size_t query_len, std::vector<float> values) {
  Problem problem({.query_len = query_len, .key_len = values.size()});
  std::fill(problem.query.begin(), problem.query.end(), 0.0f);
  problem.value = std::move(values);
  return problem;
}

// Of both paths, which must agree in every bit.
inline std::vector<float> head_output(const Problem& problem) {
  const attention::AttentionOutput exact = problem.run();
  EXPECT_TRUE(same_bits(all_bits(attention::fused_attention(problem.config, problem.input())), all_bits(exact)));
  return floats(exact.head_output);
}

// Largest absolute difference; NaN anywhere counts as infinitely far.
template <class A, class B>
double largest_difference(const A& a, const B& b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= largest)) largest = std::isnan(difference) ? INFINITY : difference;
  }
  return largest;
}

}  // namespace clearhead::tests
