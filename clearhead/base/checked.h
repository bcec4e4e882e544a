// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace clearhead::base {

// a + b, or nothing if it does not fit.
inline std::optional<size_t> checked_add(size_t a, size_t b) {
  size_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// a * b, or nothing if it does not fit.
inline std::optional<size_t> checked_multiply(size_t a, size_t b) {
  size_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The product of all factors (1 for none), or nothing if any step does not fit; a zero factor gives 0 whatever the
// others are.
inline std::optional<size_t> checked_product(std::span<const size_t> factors) {
  for (size_t factor : factors) {
    if (factor == 0) return 0;
  }
  std::optional<size_t> product = 1;
  for (size_t factor : factors) {
    product = checked_multiply(*product, factor);
    if (!product) return std::nullopt;
  }
  return product;
}

}  // namespace clearhead::base
