// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace clearhead::kernels::reference {
namespace {

bool may_be_seen(std::span<const uint8_t> visible, size_t key) { return visible.empty() || visible[key] != 0; }

}  // namespace

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void linear(std::span<const double> input, std::span<const double> weight, std::span<const double> bias,
            std::span<double> output) {
  for (size_t j = 0; j < output.size(); ++j) {
    output[j] = dot(input, weight.subspan(j * input.size(), input.size())) + (bias.empty() ? 0 : bias[j]);
  }
}

void layer_norm(std::span<const double> input, std::span<const double> gain, std::span<const double> bias,
                double epsilon, std::span<double> output) {
  const double count = static_cast<double>(input.size());
  double sum = 0, squares = 0;
  for (double x : input) sum += x;
  const double mean = sum / count;
  for (double x : input) squares += (x - mean) * (x - mean);
  const double deviation = std::sqrt(squares / count + epsilon);
  for (size_t i = 0; i < input.size(); ++i) output[i] = (input[i] - mean) / deviation * gain[i] + bias[i];
}

void rms_norm(std::span<const double> input, std::span<const double> gain, double epsilon, std::span<double> output) {
  double squares = 0;
  for (double x : input) squares += x * x;
  const double size = std::sqrt(squares / static_cast<double>(input.size()) + epsilon);
  for (size_t i = 0; i < input.size(); ++i) output[i] = input[i] / size * gain[i];
}

bool softmax(std::span<const double> input, std::span<double> output) {
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  double largest = kNothing;
  bool seen = false;
  for (double x : input) {
    seen = seen || x != kNothing;
    largest = std::max(largest, x);
  }
  if (!seen) {
    std::fill(output.begin(), output.end(), 0.0);
    return false;
  }
  double sum = 0;
  for (size_t i = 0; i < input.size(); ++i) {
    output[i] = std::exp(input[i] - largest);
    sum += output[i];
  }
  for (double& p : output) p /= sum;
  return true;
}

double gelu(double x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2); }

double gelu_tanh(double x) {
  const double argument = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * argument));
}

double silu(double x) { return x / (1 + std::exp(-x)); }

double relu(double x) { return x < 0 ? 0 : x; }

void rotate(std::span<double> head, std::span<const double> cosines, std::span<const double> sines, bool interleaved) {
  for (size_t i = 0; i < cosines.size(); ++i) {
    double& first = head[interleaved ? 2 * i : i];
    double& second = head[interleaved ? 2 * i + 1 : i + cosines.size()];
    const double a = first, b = second;
    first = a * cosines[i] - b * sines[i];
    second = a * sines[i] + b * cosines[i];
  }
}

void attention_scores(std::span<const double> query, std::span<const double> keys, double scale,
                      std::span<double> scores) {
  for (size_t j = 0; j < scores.size(); ++j) {
    scores[j] = scale * dot(query, keys.subspan(j * query.size(), query.size()));
  }
}

bool attention_weights(std::span<const double> scores, std::span<const uint8_t> visible, std::span<double> weights) {
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  for (size_t j = 0; j < scores.size(); ++j) weights[j] = may_be_seen(visible, j) ? scores[j] : kNothing;
  const bool seen = softmax(weights, weights);
  for (size_t j = 0; j < scores.size(); ++j) {
    if (!may_be_seen(visible, j)) weights[j] = 0;
  }
  return seen;
}

void weighted_sum(std::span<const double> weights, std::span<const uint8_t> visible, std::span<const double> values,
                  std::span<double> output) {
  std::fill(output.begin(), output.end(), 0.0);
  for (size_t j = 0; j < weights.size(); ++j) {
    if (!may_be_seen(visible, j)) continue;
    const auto value = values.subspan(j * output.size(), output.size());
    for (size_t c = 0; c < output.size(); ++c) output[c] += weights[j] * value[c];
  }
}

}  // namespace clearhead::kernels::reference
