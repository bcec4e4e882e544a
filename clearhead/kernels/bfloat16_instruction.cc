// SPDX-License-Identifier: Apache-2.0
// Written in intrinsics, because Highway has no target for AVX512_BF16. Attributes, not flags of the file, say what the
// functions need: nothing that other files share may be compiled for a machine that has more than theirs.
#include "clearhead/kernels/bfloat16_instruction.h"

#include "clearhead/kernels/exp2_coefficients.h"

#if defined(__x86_64__)

// The header's own registers of no value are reported by g++ 12 (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <algorithm>
#include <array>
#include <utility>

#define CLEARHEAD_BFLOAT16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define CLEARHEAD_BFLOAT16_INLINE CLEARHEAD_BFLOAT16 __attribute__((always_inline)) inline
#define CLEARHEAD_UNROLL _Pragma("GCC unroll 16")

namespace clearhead::kernels::instruction {
namespace {

// Floats of a vector, and pairs.
constexpr size_t kWidth = kPanelWidth;

// The first count of 16 lanes; all of them if there are more.
CLEARHEAD_BFLOAT16_INLINE __mmask16 lanes(size_t count) {
  return static_cast<__mmask16>(count >= kWidth ? 0xffff : (1u << count) - 1);
}

// Accumulators of kRows x kPanels outputs of 16 stay in registers over all pairs. g++ keeps them in memory around the
// loop unless it is told early that loops over them are none.
template <size_t kRows, size_t kPanels, bool kAccumulate>
CLEARHEAD_BFLOAT16_INLINE void tile(const PairProduct& p, size_t row, size_t panel) {
  const Pair* left = p.left + row * p.left_stride;
  const Pair* right = p.panels + panel * p.panel_stride;
  float* output = p.output + row * p.output_stride + panel * kWidth;
  const size_t left_stride = p.left_stride, panel_stride = p.panel_stride, output_stride = p.output_stride;
  const size_t pairs = p.pairs;
  float* maxima = p.maxima == nullptr ? nullptr : p.maxima + row * kWidth;
  const __m512 factor = _mm512_set1_ps(p.factor);

  __m512 sums[kRows][kPanels];
  CLEARHEAD_UNROLL
  for (size_t i = 0; i < kRows; ++i) {
    CLEARHEAD_UNROLL
    for (size_t v = 0; v < kPanels; ++v) {
      if constexpr (kAccumulate) {
        sums[i][v] = _mm512_loadu_ps(output + i * output_stride + v * kWidth);
      } else {
        sums[i][v] = _mm512_setzero_ps();
      }
    }
  }
  for (size_t k = 0; k < pairs; ++k) {
    __m512bh columns[kPanels];
    CLEARHEAD_UNROLL
    for (size_t v = 0; v < kPanels; ++v) {
      columns[v] = (__m512bh)_mm512_loadu_si512(right + v * panel_stride + k * kWidth);
    }
    CLEARHEAD_UNROLL
    for (size_t i = 0; i < kRows; ++i) {
      const __m512bh element = (__m512bh)_mm512_set1_epi32(static_cast<int>(left[i * left_stride + k]));
      CLEARHEAD_UNROLL
      for (size_t v = 0; v < kPanels; ++v) sums[i][v] = _mm512_dpbf16_ps(sums[i][v], element, columns[v]);
    }
  }
  CLEARHEAD_UNROLL
  for (size_t i = 0; i < kRows; ++i) {
    CLEARHEAD_UNROLL
    for (size_t v = 0; v < kPanels; ++v) {
      sums[i][v] = _mm512_fmadd_ps(sums[i][v], factor, _mm512_setzero_ps());
      _mm512_storeu_ps(output + i * output_stride + v * kWidth, sums[i][v]);
    }
  }
  if (maxima == nullptr) return;
  CLEARHEAD_UNROLL
  for (size_t i = 0; i < kRows; ++i) {
    __m512 largest = _mm512_loadu_ps(maxima + i * kWidth);
    CLEARHEAD_UNROLL
    for (size_t v = 0; v < kPanels; ++v) largest = _mm512_max_ps(largest, sums[i][v]);
    _mm512_storeu_ps(maxima + i * kWidth, largest);
  }
}

using TileFunction = void (*)(const PairProduct&, size_t, size_t);

template <size_t kRows, size_t kPanels>
CLEARHEAD_BFLOAT16 void tile_of(const PairProduct& p, size_t row, size_t panel) {
  p.accumulate ? tile<kRows, kPanels, true>(p, row, panel) : tile<kRows, kPanels, false>(p, row, panel);
}

// Tiles of 1, 2, ... rows.
template <size_t kPanels, size_t... kRows>
constexpr auto tile_functions(std::index_sequence<kRows...>) {
  return std::array<TileFunction, sizeof...(kRows)>{tile_of<kRows + 1, kPanels>...};
}

// All rows of kPanels panels; at most 24 accumulators. The last two tiles share their rows evenly.
template <size_t kPanels>
void tiles_of_panels(const PairProduct& p, size_t panel) {
  constexpr size_t kMost = std::min<size_t>(12, 24 / kPanels);
  static constexpr auto kTiles = tile_functions<kPanels>(std::make_index_sequence<kMost>());
  for (size_t row = 0; row < p.rows;) {
    const size_t rest = p.rows - row;
    const size_t rows = rest <= kMost ? rest : rest < 2 * kMost ? (rest + 1) / 2 : kMost;
    kTiles[rows - 1](p, row, panel);
    row += rows;
  }
}

// 32 floats, those from count on as 0, become 16 pairs.
CLEARHEAD_BFLOAT16_INLINE __m512i rounded(const float* numbers, size_t count) {
  const __m512 low = _mm512_maskz_loadu_ps(lanes(count), numbers);
  const __m512 high =
      count > kWidth ? _mm512_maskz_loadu_ps(lanes(count - kWidth), numbers + kWidth) : _mm512_setzero_ps();
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

// 16 x 16, in place: pairs of rows, then of their halves, then of lanes of 128 bits.
CLEARHEAD_BFLOAT16_INLINE void transpose(__m512i (&rows)[kWidth]) {
  __m512i mixed[kWidth];
  for (size_t i = 0; i < kWidth; i += 2) {
    mixed[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    mixed[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  for (size_t i = 0; i < kWidth; i += 4) {
    for (size_t half = 0; half < 2; ++half) {
      rows[i + 2 * half] = _mm512_unpacklo_epi64(mixed[i + half], mixed[i + half + 2]);
      rows[i + 2 * half + 1] = _mm512_unpackhi_epi64(mixed[i + half], mixed[i + half + 2]);
    }
  }
  for (size_t i = 0; i < 4; ++i) {  // rows[4 b + i]: column 4 lane + i of the rows 4 b ... 4 b + 3
    const __m512i even_low = _mm512_shuffle_i32x4(rows[i], rows[4 + i], 0x88);
    const __m512i odd_low = _mm512_shuffle_i32x4(rows[i], rows[4 + i], 0xdd);
    const __m512i even_high = _mm512_shuffle_i32x4(rows[8 + i], rows[12 + i], 0x88);
    const __m512i odd_high = _mm512_shuffle_i32x4(rows[8 + i], rows[12 + i], 0xdd);
    mixed[i] = _mm512_shuffle_i32x4(even_low, even_high, 0x88);
    mixed[4 + i] = _mm512_shuffle_i32x4(odd_low, odd_high, 0x88);
    mixed[8 + i] = _mm512_shuffle_i32x4(even_low, even_high, 0xdd);
    mixed[12 + i] = _mm512_shuffle_i32x4(odd_low, odd_high, 0xdd);
  }
  for (size_t i = 0; i < kWidth; ++i) rows[i] = mixed[i];
}

constexpr int kPairOfOnes = 0x3f803f80;

// Lane i of each of 16 rows with lane i + w, for w = 8, 4, 2, 1; two rows share a register after each step. Lane i of
// the result is row i.
CLEARHEAD_BFLOAT16_INLINE __m512 fold(const __m512 (&rows)[kWidth]) {
  __m512 eighths[8], quarters[4], halves[2];
  for (size_t i = 0; i < 8; ++i) {
    const __m512 a = rows[2 * i], b = rows[2 * i + 1];
    eighths[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  }
  for (size_t i = 0; i < 4; ++i) {
    const __m512 a = eighths[2 * i], b = eighths[2 * i + 1];
    quarters[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  }
  for (size_t i = 0; i < 2; ++i) {
    const __m512d a = _mm512_castps_pd(quarters[2 * i]), b = _mm512_castps_pd(quarters[2 * i + 1]);
    halves[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  const __m512 folded = _mm512_add_ps(_mm512_shuffle_ps(halves[0], halves[1], 0x88),
                                      _mm512_shuffle_ps(halves[0], halves[1], 0xdd));  // row 4 k + i in lane 4 i + k
  return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), folded);
}

// As kernels/elementary-inl.h has it, step by step.
CLEARHEAD_BFLOAT16_INLINE __m512 exp2_below_127(__m512 t) {
  const __m512 whole = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 fraction = _mm512_sub_ps(t, whole);
  __m512 sum = _mm512_set1_ps(kExp2Coefficients[5]);
  CLEARHEAD_UNROLL
  for (size_t i = 5; i-- > 0;) sum = _mm512_fmadd_ps(sum, fraction, _mm512_set1_ps(kExp2Coefficients[i]));
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(t, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ), sum, whole);
}

// The first pairs from key begin on, which stand in the upper half of the lanes: pairs of 32 keys share a register.
CLEARHEAD_BFLOAT16_INLINE void store_upper_pairs(Pair* pairs, size_t begin, size_t count, __m512bh found) {
  const auto wanted = static_cast<__mmask16>(lanes(std::min(count, kWidth / 2)) << kWidth / 2);
  _mm512_mask_storeu_epi32(pairs + begin / 2 - kWidth / 2, wanted, (__m512i)found);
}

}  // namespace

bool available() { return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl"); }

void pair_product(const PairProduct& p) {
  size_t panel = 0;
  for (; panel + 4 <= p.num_panels; panel += 4) tiles_of_panels<4>(p, panel);
  for (; panel + 2 <= p.num_panels; panel += 2) tiles_of_panels<2>(p, panel);
  for (; panel < p.num_panels; ++panel) tiles_of_panels<1>(p, panel);
}

CLEARHEAD_BFLOAT16 void round_to_pairs(const float* numbers, size_t stride, size_t rows, size_t columns, Pair* pairs,
                                       size_t pair_stride) {
  for (size_t row = 0; row < rows; ++row, numbers += stride, pairs += pair_stride) {
    for (size_t i = 0; i < columns; i += 2 * kWidth) {
      const __m512i found = rounded(numbers + i, columns - i);
      _mm512_mask_storeu_epi32(pairs + i / 2, lanes(pair_count(columns - i)), found);
    }
  }
}

CLEARHEAD_BFLOAT16 void round_powers(const float* powers, size_t stride, size_t rows, size_t begin, size_t end,
                                     Pair* pairs, size_t pair_stride, float* sums) {
  const __m512bh ones = (__m512bh)_mm512_set1_epi32(kPairOfOnes);
  __m512 lanes_of_rows[kWidth];
  for (__m512& row : lanes_of_rows) row = _mm512_setzero_ps();
  for (size_t row = 0; row < rows; ++row, powers += stride, pairs += pair_stride) {
    __m512 sum = _mm512_setzero_ps();
    size_t i = begin;
    if (i % (2 * kWidth) != 0) {
      const __m512bh found =
          _mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(lanes(end - i), powers + i), _mm512_setzero_ps());
      store_upper_pairs(pairs, i, pair_count(end - i), found);
      sum = _mm512_dpbf16_ps(sum, found, ones);
      i += kWidth;
    }
    for (; i < end; i += 2 * kWidth) {
      const __m512i found = rounded(powers + i, end - i);
      _mm512_mask_storeu_epi32(pairs + i / 2, lanes(pair_count(end - i)), found);
      sum = _mm512_dpbf16_ps(sum, (__m512bh)found, ones);
    }
    lanes_of_rows[row] = sum;
  }
  _mm512_mask_storeu_ps(sums, lanes(rows), fold(lanes_of_rows));
}

CLEARHEAD_BFLOAT16 void raise_and_round(const PowersOfRows& p) {
  const __m512bh ones = (__m512bh)_mm512_set1_epi32(kPairOfOnes);
  __m512 lanes_of_sums[kWidth], lanes_of_rounded[kWidth];
  for (size_t row = 0; row < kWidth; ++row) lanes_of_sums[row] = lanes_of_rounded[row] = _mm512_setzero_ps();
  for (size_t row = 0; row < p.rows; ++row) {
    const float* scores = p.scores + row * p.stride;
    Pair* pairs = p.pairs + row * p.pair_stride;
    const __m512 reference = _mm512_set1_ps(p.references[row]);
    __m512 sum = _mm512_setzero_ps(), rounded_sum = sum;
    size_t i = p.begin;
    if (i % (2 * kWidth) != 0) {
      const __m512 power = exp2_below_127(_mm512_sub_ps(_mm512_loadu_ps(scores + i), reference));
      const __m512bh found = _mm512_cvtne2ps_pbh(power, _mm512_setzero_ps());
      store_upper_pairs(pairs, i, kWidth / 2, found);
      sum = _mm512_add_ps(sum, power);
      rounded_sum = _mm512_dpbf16_ps(rounded_sum, found, ones);
      i += kWidth;
    }
    for (; i + 2 * kWidth <= p.end; i += 2 * kWidth) {
      const __m512 low = exp2_below_127(_mm512_sub_ps(_mm512_loadu_ps(scores + i), reference));
      const __m512 high = exp2_below_127(_mm512_sub_ps(_mm512_loadu_ps(scores + i + kWidth), reference));
      const __m512bh found = _mm512_cvtne2ps_pbh(high, low);
      _mm512_storeu_si512(pairs + i / 2, (__m512i)found);
      sum = _mm512_add_ps(_mm512_add_ps(sum, low), high);
      rounded_sum = _mm512_dpbf16_ps(rounded_sum, found, ones);
    }
    if (i < p.end) {
      const __m512 power = exp2_below_127(_mm512_sub_ps(_mm512_loadu_ps(scores + i), reference));
      const __m512bh found = _mm512_cvtne2ps_pbh(_mm512_setzero_ps(), power);
      _mm512_mask_storeu_epi32(pairs + i / 2, lanes(kWidth / 2), (__m512i)found);
      sum = _mm512_add_ps(sum, power);
      rounded_sum = _mm512_dpbf16_ps(rounded_sum, found, ones);
    }
    lanes_of_sums[row] = sum;
    lanes_of_rounded[row] = rounded_sum;
  }
  _mm512_mask_storeu_ps(p.sums, lanes(p.rows), fold(lanes_of_sums));
  _mm512_mask_storeu_ps(p.rounded_sums, lanes(p.rows), fold(lanes_of_rounded));
}

CLEARHEAD_BFLOAT16 void pack_column_panel(const float* matrix, size_t stride, size_t depth, size_t columns,
                                          Pair* panel) {
  alignas(64) static constexpr uint16_t kInTurns[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i in_turns = _mm512_load_si512(kInTurns);
  const __mmask16 wanted = lanes(columns);
  for (size_t k = 0; k < depth; k += 2, panel += kWidth) {
    const __m512 low = _mm512_maskz_loadu_ps(wanted, matrix + k * stride);
    const __m512 high = k + 1 < depth ? _mm512_maskz_loadu_ps(wanted, matrix + (k + 1) * stride) : _mm512_setzero_ps();
    const __m512i halves = (__m512i)_mm512_cvtne2ps_pbh(high, low);
    _mm512_storeu_si512(panel, _mm512_permutexvar_epi16(in_turns, halves));
  }
}

CLEARHEAD_BFLOAT16 bool all_finite(const Pair* pairs, size_t count) {
  const __m512i exponents = _mm512_set1_epi32(0x7f807f80);
  __mmask32 found = 0;
  for (size_t i = 0; i < count; i += kWidth) {
    const __m512i some = _mm512_maskz_loadu_epi32(lanes(count - i), pairs + i);
    found |= _mm512_cmpeq_epi16_mask(_mm512_and_si512(some, exponents), exponents);
  }
  return found == 0;
}

CLEARHEAD_BFLOAT16 void pack_row_panel(const float* matrix, size_t stride, size_t depth, size_t columns, Pair* panel) {
  for (size_t k = 0; k < depth; k += 2 * kWidth) {
    __m512i pairs[kWidth];
    for (size_t j = 0; j < kWidth; ++j) {
      pairs[j] = j < columns ? rounded(matrix + j * stride + k, depth - k) : _mm512_setzero_si512();
    }
    transpose(pairs);
    const size_t count = std::min(kWidth, pair_count(depth - k));
    for (size_t i = 0; i < count; ++i, panel += kWidth) _mm512_storeu_si512(panel, pairs[i]);
  }
}

}  // namespace clearhead::kernels::instruction

#else

namespace clearhead::kernels::instruction {

bool available() { return false; }
void pair_product(const PairProduct&) {}
void round_to_pairs(const float*, size_t, size_t, size_t, Pair*, size_t) {}
void round_powers(const float*, size_t, size_t, size_t, size_t, Pair*, size_t, float*) {}
void raise_and_round(const PowersOfRows&) {}
bool all_finite(const Pair*, size_t) { return true; }
void pack_column_panel(const float*, size_t, size_t, size_t, Pair*) {}
void pack_row_panel(const float*, size_t, size_t, size_t, Pair*) {}

}  // namespace clearhead::kernels::instruction

#endif
