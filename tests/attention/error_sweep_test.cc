// SPDX-License-Identifier: Apache-2.0
// How far the one-pass kernel is from the truth: never more than twice as far as the textbook in the same precision.
//
// The measure. A cell of the sweep is one shape, in several problems of 48 rows or more. Over all numbers of output of
// a cell the root mean square and the largest of |found - truth| are taken, truth in double, for the kernel and for the
// textbook, and each must be at most twice the textbook's. Several problems, because where scores are large few rows
// have more than one key that counts, and the errors of few rows are luck on both sides: of 48 rows with scores of
// hundreds the kernel's may be 20 times the textbook's or a twentieth, of a thousand they are the same. One luck is
// left to the textbook: where it has nothing to round (a single key weighs 1 and its value is copied) its error is 0,
// so half a unit in the last place of the largest value, 2^-24 max|v|, is added to both of its numbers: what an exact
// result may be off that is rounded once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "clearhead/attention/fused.h"
#include "clearhead/tensor/dtype.h"
#include "problem.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using attention::Causal;
using attention::Precision;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr size_t kHeadSizes[] = {1, 3, 7, 8, 9, 16, 40, 63, 64, 65, 72, 80, 96, 100, 128, 160, 192, 256};
constexpr size_t kKeyLengths[] = {0,  1,   2,   3,   5,   15,  16,  17,  31,  33,  64,
                                  97, 127, 129, 200, 255, 256, 257, 383, 511, 512, 513};

float rounded(float x) { return tensor::to_float(tensor::to_bfloat16(x)); }

// One row of the textbook, float from end to end, sums from first to last: scores, their largest taken away, exp, one
// division, weighted sum. In bfloat16 the weights are rounded to it, as its inputs are already.
void naive_row(const Problem& problem, const attention::ReferenceOutput& truth, size_t head, size_t query,
               std::span<float> output) {
  const attention::AttentionConfig& config = problem.config;
  const size_t kv_head = config.kv_head_of(head), dim = config.head_dim;
  const float* q = &problem.query[(query * config.num_heads + head) * dim];
  const size_t row = (head * problem.query_len + query) * problem.key_len;  // of [heads, query, key]
  std::vector<float> scores(problem.key_len, -kInfinity);
  float largest = config.sinks.empty() ? -kInfinity : config.sinks[head];
  for (size_t j = 0; j < problem.key_len; ++j) {
    if (std::isinf(truth.scores[row + j])) continue;
    const float* k = &problem.key[(j * config.num_kv_heads + kv_head) * dim];
    float dot = 0;
    for (size_t i = 0; i < dim; ++i) dot += q[i] * k[i];
    scores[j] = dot * config.effective_scale();
    if (config.soft_cap) scores[j] = *config.soft_cap * std::tanh(scores[j] / *config.soft_cap);
    if (problem.mask.present()) scores[j] += problem.mask_values.as<float>()[row + j];
    if (!config.alibi_slopes.empty()) {
      const int64_t distance = static_cast<int64_t>(j) - static_cast<int64_t>(query) - config.key_offset;
      scores[j] += config.alibi_slopes[head] * static_cast<float>(distance);
    }
    largest = std::max(largest, scores[j]);
  }
  std::ranges::fill(output, 0.0f);
  if (largest == -kInfinity) return;
  float sum = config.sinks.empty() ? 0.0f : std::exp(config.sinks[head] - largest);
  for (float& score : scores) sum += score = std::exp(score - largest);
  for (size_t j = 0; j < problem.key_len; ++j) {
    if (scores[j] == 0) continue;
    const float weight = config.precision == Precision::bfloat16 ? rounded(scores[j] / sum) : scores[j] / sum;
    const float* v = &problem.value[(j * config.num_kv_heads + kv_head) * config.value_dim];
    for (size_t i = 0; i < config.value_dim; ++i) output[i] += weight * v[i];
  }
}

std::vector<float> naive(const Problem& problem, const attention::ReferenceOutput& truth) {
  const size_t heads = problem.config.num_heads, width = problem.config.value_dim;
  std::vector<float> output(problem.query_len * heads * width);  // [query, heads, value_dim]
  for (size_t query = 0; query < problem.query_len; ++query) {
    for (size_t head = 0; head < heads; ++head) {
      naive_row(problem, truth, head, query, std::span(output).subspan((query * heads + head) * width, width));
    }
  }
  return output;
}

// The errors of a cell so far.
struct Errors {
  double squares = 0, largest = 0, count = 0;

  void add(std::span<const float> found, std::span<const double> truth) {
    for (size_t i = 0; i < truth.size(); ++i) {
      const double error = std::abs(found[i] - truth[i]);
      squares += error * error;
      if (!(error <= largest)) largest = error;
    }
    count += static_cast<double>(truth.size());
  }
  double root_mean_square() const { return count == 0 ? 0 : std::sqrt(squares / count); }
};

// Problems of batch 1; a mask, if there is one, is of floats and of [1, heads, query, key].
void expect_at_most_twice_the_error_of_the_textbook(size_t problems, const std::function<Problem(uint64_t)>& make) {
  Errors plain;
  std::map<std::string, Errors> own;  // by target
  double once = 0;
  for (uint64_t seed = 1; seed <= problems; ++seed) {
    const Problem problem = make(seed);
    const auto truth = problem.reference();
    plain.add(naive(problem, truth), truth.head_output);
    for (const float v : problem.value) once = std::max(once, 0x1p-24 * static_cast<double>(std::abs(v)));
    for_each_target([&](const std::string& target) {
      const auto output = attention::fused_attention(problem.config, problem.input());
      own[target].add(output.head_output.as<float>(), truth.head_output);
    });
  }
  for (const auto& [target, errors] : own) {
    EXPECT_LE(errors.root_mean_square(), 2 * (plain.root_mean_square() + once)) << target;
    EXPECT_LE(errors.largest, 2 * (plain.largest + once)) << target;
  }
}

Problem of_sizes(size_t key_len, size_t dim, uint64_t seed, float factor) {
  return Problem(
      {.query_len = 24, .key_len = key_len, .num_heads = 2, .num_kv_heads = 1, .head_dim = dim, .value_dim = dim},
      seed * 1000000 + key_len * 1000 + dim, factor);
}

// Every length with some head sizes and every head size with some lengths.
void for_each_size(const std::function<void(size_t key_len, size_t dim)>& work) {
  for (const size_t key_len : kKeyLengths) {
    for (const size_t dim : kHeadSizes) {
      const bool some_dim = dim == 1 || dim == 9 || dim == 40 || dim == 64 || dim == 100;
      const bool some_len = key_len == 1 || key_len == 16 || key_len == 97 || key_len == 257 || key_len == 513;
      if (!some_dim && !some_len) continue;
      SCOPED_TRACE(testing::Message() << key_len << " keys of " << dim);
      work(key_len, dim);
    }
  }
}

TEST(ErrorSweep, OfFloatOverLengthsAndHeadSizesOnEveryTarget) {
  for_each_size([](size_t key_len, size_t dim) {
    expect_at_most_twice_the_error_of_the_textbook(4,
                                                   [=](uint64_t seed) { return of_sizes(key_len, dim, seed, 2.0f); });
  });
}

TEST(ErrorSweep, OfBFloat16OverLengthsAndHeadSizesOnEveryTarget) {
  for_each_size([](size_t key_len, size_t dim) {
    expect_at_most_twice_the_error_of_the_textbook(2, [=](uint64_t seed) {
      Problem problem = of_sizes(key_len, dim, seed, 3.0f);
      for (auto* values : {&problem.query, &problem.key, &problem.value}) {
        std::ranges::transform(*values, values->begin(), rounded);  // nothing is lost before the computation
      }
      problem.config.precision = Precision::bfloat16;
      return problem;
    });
  });
}

// Small scores, where all keys count, and scores of hundreds, where few do.
TEST(ErrorSweep, OfScoresOfAnySizeOnEveryTarget) {
  for (const float factor : {0.0f, 0.1f, 5.0f, 12.0f, 20.0f}) {
    for (const size_t key_len : {9, 300}) {
      for (const size_t dim : {8, 64, 100}) {
        SCOPED_TRACE(testing::Message() << key_len << " keys of " << dim << ", factor " << factor);
        expect_at_most_twice_the_error_of_the_textbook(24, [=](uint64_t seed) {
          Problem problem = of_sizes(key_len, dim, seed, factor);
          problem.config.value_dim = 8;
          problem.value.resize(key_len * 8);
          return problem;
        });
      }
    }
  }
}

Problem of_behaviour(int behaviour, size_t key_len, uint64_t seed) {
  Problem problem(
      {.query_len = 24, .key_len = key_len, .num_heads = 4, .num_kv_heads = 2, .head_dim = 40, .value_dim = 24},
      seed * 1000 + key_len, 3.0f);
  auto& config = problem.config;
  switch (behaviour) {
    case 0: config.causal = Causal::top_left; break;
    case 1: config.causal = Causal::offset, config.key_offset = static_cast<int64_t>(key_len) - 24; break;
    case 2: config.key_offset = 100, config.left_window = 60, config.right_window = 33; break;
    case 3: config.soft_cap = 5.0f; break;
    case 4: config.alibi_slopes = {.5f, .25f, .125f, .0625f}; break;
    case 5: config.sinks = {1, -2, 3, 0}; break;
    case 6: {
      std::vector<float> bias = hashed_values(seed, 4 * 24 * key_len, 4.0f);
      for (size_t i = 0; i < bias.size(); i += 7) bias[i] = i % 2 == 0 ? -kInfinity : -1e30f;
      problem.set_mask(bias, {1, 4, 24, key_len});
      break;
    }
    default: config.scale = 0.02f, config.soft_cap = 30.0f, config.causal = Causal::top_left; break;
  }
  return problem;
}

TEST(ErrorSweep, OfEveryBehaviourOnEveryTarget) {
  for (const size_t key_len : {5, 200, 257, 513}) {
    for (int behaviour = 0; behaviour < 8; ++behaviour) {
      SCOPED_TRACE(testing::Message() << key_len << " keys, behaviour " << behaviour);
      expect_at_most_twice_the_error_of_the_textbook(
          4, [=](uint64_t seed) { return of_behaviour(behaviour, key_len, seed); });
    }
  }
}

}  // namespace
}  // namespace clearhead::tests
