// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/verify_bounded.h"

#include <algorithm>
#include <cmath>

#include "clearhead/kernels/reference.h"

namespace clearhead::engine {
namespace {

namespace reference = kernels::reference;

std::vector<double> in_double(const tensor::Tensor& tensor) {
  const auto values = tensor.as<float>();
  return {values.begin(), values.end()};
}

double apply(linear::Activation activation, double x) {
  switch (activation) {
    case linear::Activation::none: return x;
    case linear::Activation::gelu: return reference::gelu(x);
    case linear::Activation::gelu_tanh: return reference::gelu_tanh(x);
    case linear::Activation::silu: return reference::silu(x);
    case linear::Activation::relu: return reference::relu(x);
  }
  return x;
}

struct NormInDouble {
  std::vector<double> gain, bias;  // [d_model]
  double epsilon;
};

// One row of a stage and its bounds. Shapes: both [d_model].
template <class T>
struct Row {
  std::span<T> values, bounds;
};

void norm_row(const Row<const double>& from, const NormInDouble& parameters, const Row<double>& to) {
  const auto [x, dx] = from;
  const double count = static_cast<double>(x.size());
  // What kernels::layer_norm states.
  const double mean_error = (count / 16 + 6) * kRounding, centred_error = (count / 32 + 9) * kRounding;
  double mean = 0, variance = 0, magnitude = 0;
  for (double value : x) mean += value / count;
  for (double value : x) variance += (value - mean) * (value - mean) / count;
  for (double value : x) magnitude += std::abs(value) / count;
  const double deviation = std::sqrt(variance + parameters.epsilon);
  double mean_dx = 0, mean_ndx = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    mean_dx += dx[i] / count;
    mean_ndx += std::abs((x[i] - mean) / deviation) * dx[i] / count;
  }
  reference::layer_norm(x, parameters.gain, parameters.bias, parameters.epsilon, to.values);
  for (size_t i = 0; i < x.size(); ++i) {
    const double carried = dx[i] + mean_dx + std::abs((x[i] - mean) / deviation) * mean_ndx;
    const double rounded = mean_error * magnitude + centred_error * std::abs(x[i] - mean);
    const double gained = std::abs(parameters.gain[i]) / deviation * (carried + rounded);
    to.bounds[i] = gained + kRounding * std::abs(to.values[i]) + kSmallest;
  }
}

void rms_norm_row(const Row<const double>& from, const NormInDouble& parameters, const Row<double>& to) {
  const auto [x, dx] = from;
  const double count = static_cast<double>(x.size());
  const double stated_error = (count / 32 + 8) * kRounding;  // of kernels::rms_norm, times |y|
  double mean = 0, mean_ndx = 0;
  for (double value : x) mean += value * value / count;
  const double root = std::sqrt(mean + parameters.epsilon);
  for (size_t i = 0; i < x.size(); ++i) mean_ndx += std::abs(x[i] / root) * dx[i] / count;
  reference::rms_norm(x, parameters.gain, parameters.epsilon, to.values);
  for (size_t i = 0; i < x.size(); ++i) {
    const double carried = std::abs(parameters.gain[i]) / root * (dx[i] + std::abs(x[i] / root) * mean_ndx);
    to.bounds[i] = carried + stated_error * std::abs(to.values[i]) + kSmallest;
  }
}

}  // namespace

double magnitude_of(std::span<const double> a, std::span<const double> b) {
  constexpr size_t kSums = 4;  // side by side, so that one addition need not wait for the last
  double sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= a.size(); i += kSums) {
    for (size_t s = 0; s < kSums; ++s) sums[s] += std::abs(a[i + s] * b[i + s]);
  }
  for (; i < a.size(); ++i) sums[0] += std::abs(a[i] * b[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

Bounded exactly(std::span<const double> values) {
  Bounded result(values.size());
  std::ranges::copy(values, result.values.begin());
  return result;
}

Bounded add(std::initializer_list<std::span<const double>> terms) {
  Bounded result(terms.begin()->size());
  for (size_t i = 0; i < result.values.size(); ++i) {
    double sum = 0, magnitude = 0;
    for (std::span<const double> term : terms) {
      sum += term[i];
      magnitude += std::abs(term[i]);
    }
    result.values[i] = sum;
    result.bounds[i] = sum_bound(terms.size(), magnitude);
  }
  return result;
}

Bounded project(std::span<const double> input, size_t rows, const Projection& projection,
                std::span<const double> input_bounds) {
  const size_t depth = projection.depth, count = projection.outputs.size();
  const bool biased = projection.with_bias && !projection.parameters.bias().empty();
  Bounded result(rows * count);
  for_each_unit(count, (rows + 1) * depth, [&](size_t o) {
    const size_t out = projection.outputs[o];
    std::vector<double> weight(depth);
    for (size_t k = 0; k < depth; ++k) weight[k] = projection.parameters.weight_at(out, projection.first + k);
    const double bias = biased ? projection.parameters.bias_at(out) : 0;
    for (size_t row = 0; row < rows; ++row) {
      const auto x = input.subspan(row * depth, depth);
      const double magnitude = magnitude_of(x, weight) + std::abs(bias);
      result.values[row * count + o] = reference::dot(x, weight) + bias;
      double& bound = result.bounds[row * count + o];
      bound = sum_bound(depth + (biased ? 1 : 0), magnitude);
      if (!input_bounds.empty()) bound += magnitude_of(input_bounds.subspan(row * depth, depth), weight);
    }
  });
  return result;
}

Bounded norm(const Bounded& x, const model::NormParameters& parameters, double epsilon) {
  const NormInDouble in{in_double(parameters.gain), in_double(parameters.bias), epsilon};
  const size_t d_model = in.gain.size();
  Bounded result(x.values.size());
  for_each_unit(x.values.size() / d_model, d_model, [&](size_t row) {
    const auto part = [&](auto& values) { return std::span(values).subspan(row * d_model, d_model); };
    const auto one = in.bias.empty() ? rms_norm_row : norm_row;
    one({part(x.values), part(x.bounds)}, in, {part(result.values), part(result.bounds)});
  });
  return result;
}

Bounded activate(Bounded x, linear::Activation activation) {
  constexpr double kSteepest = 1.13;     // of all activations, at about 1.41 on gelu and gelu_tanh
  constexpr double kStatedError = 2e-7;  // of kernels::gelu, gelu_tanh and silu, times |x|
  const bool curved = activation != linear::Activation::none && activation != linear::Activation::relu;
  for (size_t i = 0; i < x.values.size(); ++i) {
    const double size = std::abs(x.values[i]);
    x.values[i] = apply(activation, x.values[i]);
    if (curved) x.bounds[i] = kSteepest * x.bounds[i] + kStatedError * size;
  }
  return x;
}

Bounded multiply(const Bounded& a, const Bounded& b) {
  Bounded result(a.values.size());
  for (size_t i = 0; i < result.values.size(); ++i) {
    const double x = a.values[i], y = b.values[i], dx = a.bounds[i], dy = b.bounds[i];
    result.values[i] = x * y;
    result.bounds[i] = std::abs(x) * dy + std::abs(y) * dx + dx * dy + kRounding * std::abs(x * y) + kSmallest;
  }
  return result;
}

Bounded turn(const Bounded& x, size_t heads, size_t head_dim, const model::RotaryTable& table) {
  const std::span<const float> cosines = table.cosines.as<float>(), sines = table.sines.as<float>();
  const size_t pairs = table.cosines.shape()[1];
  const bool interleaved = table.layout == kernels::RotaryLayout::interleaved;
  Bounded result = x;
  for_each_unit(x.values.size() / head_dim, head_dim, [&](size_t unit) {
    const size_t row = unit / heads, at = unit * head_dim;
    const std::span<double> head = std::span(result.values).subspan(at, head_dim);
    std::vector<double> cosine(pairs), sine(pairs);
    for (size_t i = 0; i < pairs; ++i) {
      cosine[i] = static_cast<double>(cosines[row * pairs + i]);
      sine[i] = static_cast<double>(sines[row * pairs + i]);
      const size_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + pairs;
      const double length = std::hypot(cosine[i], sine[i]);
      const double size = (std::abs(head[first]) + std::abs(head[second])) * length;
      const double carried = (x.bounds[at + first] + x.bounds[at + second]) * length;
      result.bounds[at + first] = result.bounds[at + second] = carried + 2 * kRounding * size + kSmallest;
    }
    reference::rotate(head, cosine, sine, interleaved);
  });
  return result;
}

}  // namespace clearhead::engine
