// SPDX-License-Identifier: Apache-2.0
#include "clearhead/tensor/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "clearhead/base/error.h"

namespace clearhead::tensor {
namespace {

// Place of a float in the order of all floats; -0 and +0 share place 0.
int64_t place(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  return bits >= 0 ? bits : -static_cast<int64_t>(bits & 0x7fffffff);
}

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double apart = std::abs(a - b);
  return std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart;
}

double relative(double apart, double truth) { return std::isinf(apart) ? apart : apart / std::abs(truth); }

}  // namespace

uint64_t ulp_distance(float a, float b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  if (std::isnan(a) || std::isnan(b)) return UINT64_MAX;
  return static_cast<uint64_t>(std::llabs(place(a) - place(b)));
}

Difference compare(const TensorView& a, const TensorView& b) {
  if (a.shape() != b.shape()) base::fail("compare", "shape " + b.shape().text(), a.shape().text());
  const Tensor left = to_dtype(a, DType::f64), right = to_dtype(b, DType::f64);
  const auto x = left.as<double>(), y = right.as<double>();
  const bool floats = a.dtype() == DType::f32 && b.dtype() == DType::f32;
  Difference worst;
  for (size_t i = 0; i < x.size(); ++i) {
    const double apart = distance(x[i], y[i]);
    if (apart > worst.max_abs) {
      worst.max_abs = apart;
      worst.at = i;
    }
    if (apart > 0) worst.max_relative = std::max(worst.max_relative, relative(apart, y[i]));
    if (floats) worst.max_ulp = std::max(worst.max_ulp, ulp_distance(float(x[i]), float(y[i])));
  }
  return worst;
}

bool same_bits(const TensorView& a, const TensorView& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::ranges::equal(a.bytes(), b.bytes());
}

}  // namespace clearhead::tensor
