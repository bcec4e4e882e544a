// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>

#include "clearhead/attention/config.h"

namespace clearhead::attention {

// How every path computes a kernel score, in log2 units, to the same bit:
//
//   q' = q query_factor, rounded once       dot = sum over head_dim of q' k, in order, by fused multiply-add
//   in bfloat16 dot = (sum over head_dim of q k, both rounded, by kernels::pair_product) query_factor
//   t = dot, or with a soft cap tanh(dot) cap_factor
//   t = fma(bias, log2 e, t) for the bias of a float mask, then for that of ALiBi, which is slope float(j - p)
struct ScoreRecipe {
  float query_factor;  // float(scale log2 e), or with a soft cap float(scale / cap)
  float cap_factor;    // float(cap log2 e); 0 without a soft cap

  explicit ScoreRecipe(const AttentionConfig& config)
      : query_factor(static_cast<float>(config.soft_cap ? double{config.effective_scale()} / *config.soft_cap
                                                        : config.effective_scale() * std::numbers::log2e)),
        cap_factor(config.soft_cap ? static_cast<float>(*config.soft_cap * std::numbers::log2e) : 0.0f) {}

  bool capped() const { return cap_factor != 0; }
};

// What a bias in natural units does to a kernel score.
inline float add_bias(float bias, float score) { return std::fma(bias, std::numbers::log2e_v<float>, score); }

// The bias that ALiBi gives a key so many positions behind the query (negative: before it).
// Source: Press et al. 2022, Train Short, Test Long, section 3.
inline float alibi_bias(float slope, int64_t distance) { return slope * static_cast<float>(distance); }

}  // namespace clearhead::attention
