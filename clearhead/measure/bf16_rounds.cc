// SPDX-License-Identifier: Apache-2.0
#include "clearhead/measure/bf16_rounds.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace clearhead::measure {

bool has_bf16_products() { return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bf16") != 0; }

__attribute__((target("avx512f,avx512bf16"))) double bf16_product_rounds(size_t steps, float* sink) {
  constexpr int kChains = 12;
  const __m512bh left = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.25f)), right = left;
  __m512 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  for (size_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], left, right);
  }
  __m512 sum = sums[0];
  for (int i = 1; i < kChains; ++i) sum = _mm512_add_ps(sum, sums[i]);
  alignas(64) float lanes[16];
  _mm512_store_ps(lanes, sum);
  *sink = lanes[0];
  return 2.0 * 32 * kChains * static_cast<double>(steps);  // 32 products and as many additions each
}

}  // namespace clearhead::measure

#else
namespace clearhead::measure {

bool has_bf16_products() { return false; }
double bf16_product_rounds(size_t, float*) { return 0; }

}  // namespace clearhead::measure
#endif
