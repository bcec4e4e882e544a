// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace clearhead::kernels {

constexpr size_t kMostGroups = 8;

// Few keys whose weights are added up: those that are listed, in rising order, or the one so far from the query's own
// position (0: itself, -1: the previous).
struct KeyGroup {
  std::span<const size_t> keys = {};
  std::optional<int64_t> distance = std::nullopt;
};

// What a row keeps of the keys it has seen so far beside its summary; sums in units of 2^reference.
struct RowEvidence {
  float score_sum;                        // sum of exp2(t - r) (t - r)
  float distance_sum;                     // sum of exp2(t - r) |j - position|
  float largest;                          // the largest kernel score
  size_t key;                             // the first key that has it
  std::array<float, kMostGroups> masses;  // sums of exp2(t - r) over each group
};

// Where rows keep it.
struct EvidenceOfRows {
  const int64_t* positions = nullptr;  // [rows]
  std::span<const KeyGroup> groups = {};
  RowEvidence* rows = nullptr;  // [rows]; nullptr: nothing is kept
};

}  // namespace clearhead::kernels
