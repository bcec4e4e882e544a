// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace clearhead::tests {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

inline std::vector<float> normal_values(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

inline std::vector<double> as_double(const std::vector<float>& values) { return {values.begin(), values.end()}; }

inline std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  for (size_t i = 0; i < values.size(); ++i) bits[i] = std::bit_cast<uint32_t>(values[i]);
  return bits;
}

// |value - truth| in steps between floats at truth; 0 for NaN against NaN and equal infinities, huge for NaN against a
// number.
inline double ulp_error(float value, double truth) {
  if (std::isnan(value) || std::isnan(truth)) return std::isnan(value) == std::isnan(truth) ? 0 : 1e300;
  const float rounded = static_cast<float>(truth);
  if (std::isinf(rounded) || std::isinf(value)) return value == rounded ? 0 : 1e300;
  const float size = std::abs(rounded);
  const double step = size == std::numeric_limits<float>::max() ? 0x1p104 : double(std::nextafter(size, kInf)) - size;
  return std::abs(value - truth) / step;
}

}  // namespace clearhead::tests
