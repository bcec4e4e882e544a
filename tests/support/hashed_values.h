// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace clearhead::tests {

// Number `index` of stream `seed`, in [-1, 1): the upper 24 bits of a 64-bit mix of both, so that any language computes
// the same floats without a table. Source of the mix: Steele, Lea, Flood 2014 (SplitMix64).
inline float hashed_value(uint64_t seed, uint64_t index) {
  uint64_t z = (seed << 32) + index + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<float>(z >> 40) * 0x1p-23f - 1.0f;
}

inline std::vector<float> hashed_values(uint64_t seed, size_t count, float factor = 1.0f) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = hashed_value(seed, i) * factor;
  return values;
}

}  // namespace clearhead::tests
