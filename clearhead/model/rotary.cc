// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include "clearhead/base/error.h"
#include "clearhead/base/parallel.h"

namespace clearhead::model {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

void expect(bool holds, std::string_view expected, const std::string& found) {
  if (!holds) base::fail("rotary positions", expected, found);
}

std::vector<double> plain_frequencies(size_t dim, double base) {
  std::vector<double> frequencies(dim / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] = std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(dim));
  }
  return frequencies;
}

// The base for a text longer than those of the training.
double dynamic_base(const RotaryConfig& config, size_t declared_len) {
  const double dim = static_cast<double>(config.dim), original = static_cast<double>(config.original_len);
  const double length = std::max(static_cast<double>(declared_len), original);
  const double stretch = config.factor * length / original - (config.factor - 1);
  return config.base * std::pow(stretch, dim / (dim - 2));
}

void scale_llama3(const RotaryConfig& config, std::vector<double>& frequencies) {
  const double original = static_cast<double>(config.original_len);
  for (double& f : frequencies) {
    const double wavelength = kTurn / f;
    if (wavelength < original / config.high_factor) continue;
    const double low = config.low_factor, high = config.high_factor;
    const double smooth = std::clamp((original / wavelength - low) / (high - low), 0.0, 1.0);
    f = (1 - smooth) * f / config.factor + smooth * f;
  }
}

// The pair that turns so many times within the original length, as a fraction of pairs.
double yarn_pair(const RotaryConfig& config, double turns) {
  const double original = static_cast<double>(config.original_len);
  return static_cast<double>(config.dim) * std::log(original / (turns * kTurn)) / (2 * std::log(config.base));
}

void scale_yarn(const RotaryConfig& config, std::vector<double>& frequencies) {
  double low = yarn_pair(config, config.beta_fast), high = yarn_pair(config, config.beta_slow);
  if (config.whole_ramp) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(config.dim) - 1);
  if (low == high) high += 0.001;  // as the source does, so that nothing is divided by 0
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / config.factor * ramp + frequencies[i] * (1 - ramp);
  }
}

double yarn_magnitude(double factor, double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; }

}  // namespace

double RotaryConfig::effective_attention_factor() const {
  if (attention_factor) return *attention_factor;
  if (scaling == RotaryScaling::yarn) {
    if (mscale != 0 && mscale_all_dim != 0)
      return yarn_magnitude(factor, mscale) / yarn_magnitude(factor, mscale_all_dim);
    return yarn_magnitude(factor, 1);
  }
  if (scaling == RotaryScaling::longrope && factor > 1) {
    return std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(original_len)));
  }
  return 1;
}

void RotaryConfig::check(size_t head_dim) const {
  expect(dim >= 2 && dim % 2 == 0 && dim <= head_dim,
         fmt::format("an even number of dimensions from 2 to {}", head_dim), fmt::format("{}", dim));
  expect(std::isfinite(base) && base > 1, "a base above 1", fmt::format("{}", base));
  expect(std::isfinite(factor) && factor > 0, "a factor above 0", fmt::format("{}", factor));
  const bool stretched = scaling != RotaryScaling::none && scaling != RotaryScaling::linear;
  expect(!stretched || original_len >= 2, "an original length of 2 or more", fmt::format("{}", original_len));
  expect(scaling != RotaryScaling::dynamic || dim > 2, "more than 2 dimensions for the dynamic base",
         fmt::format("{}", dim));
  expect(scaling != RotaryScaling::llama3 || (low_factor > 0 && high_factor > low_factor),
         "a low_freq_factor above 0 and a high_freq_factor above it",
         fmt::format("{} and {}", low_factor, high_factor));
  expect(scaling != RotaryScaling::yarn || (beta_slow > 0 && beta_fast >= beta_slow),
         "a beta_slow above 0 and a beta_fast not below it", fmt::format("{} and {}", beta_slow, beta_fast));
  expect(std::isfinite(effective_attention_factor()) && effective_attention_factor() > 0, "an attention factor above 0",
         fmt::format("{}", effective_attention_factor()));
  if (scaling != RotaryScaling::longrope) return;
  for (const auto* factors : {&short_factors, &long_factors}) {
    expect(factors->size() == dim / 2, fmt::format("{} factors of longrope", dim / 2),
           fmt::format("{}", factors->size()));
    expect(std::ranges::all_of(*factors, [](double f) { return std::isfinite(f) && f > 0; }),
           "factors of longrope above 0", "another");
  }
}

std::vector<double> rotary_frequencies(const RotaryConfig& config, size_t declared_len,
                                       std::span<const float> divisors) {
  const bool dynamic = config.scaling == RotaryScaling::dynamic;
  std::vector<double> frequencies =
      plain_frequencies(config.dim, dynamic ? dynamic_base(config, declared_len) : config.base);
  if (config.scaling == RotaryScaling::linear) {
    for (double& f : frequencies) f /= config.factor;
  }
  if (config.scaling == RotaryScaling::llama3) scale_llama3(config, frequencies);
  if (config.scaling == RotaryScaling::yarn) scale_yarn(config, frequencies);
  if (config.scaling == RotaryScaling::longrope) {
    const auto& factors = declared_len > config.original_len ? config.long_factors : config.short_factors;
    for (size_t i = 0; i < frequencies.size(); ++i) frequencies[i] /= factors[i];
  }
  for (size_t i = 0; i < divisors.size(); ++i) frequencies[i] /= static_cast<double>(divisors[i]);
  return frequencies;
}

RotaryTable rotary_table(const RotaryConfig& config, size_t declared_len, size_t first, size_t count,
                         std::span<const float> divisors) {
  const std::vector<double> frequencies = rotary_frequencies(config, declared_len, divisors);
  const double magnitude = config.effective_attention_factor();
  const size_t pairs = frequencies.size();
  RotaryTable table{config.layout, tensor::Tensor(tensor::Shape{count, pairs}),
                    tensor::Tensor(tensor::Shape{count, pairs})};
  const std::span<float> cosines = table.cosines.as<float>(), sines = table.sines.as<float>();
  base::parallel_for(count, [&](size_t row) {
    for (size_t i = 0; i < pairs; ++i) {
      const double angle = static_cast<double>(first + row) * frequencies[i];
      cosines[row * pairs + i] = static_cast<float>(std::cos(angle) * magnitude);
      sines[row * pairs + i] = static_cast<float>(std::sin(angle) * magnitude);
    }
  });
  return table;
}

}  // namespace clearhead::model
