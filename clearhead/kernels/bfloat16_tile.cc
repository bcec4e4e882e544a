// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/bfloat16_tile.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "clearhead/kernels/bfloat16_instruction.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/kernels/bfloat16_tile.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

// Whether the target in use is AVX-512; to ask the machine takes longer than a product.
bool is_avx512() { return HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL; }

inline float flush(float x) { return std::abs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

// flush(fma(a, b, sum)), given the fma. The instruction looks at a result whose exponent is not yet limited: one that
// rounds to 2^-126 only because steps are wider below is flushed too. The difference to the first number that does not
// is exact in double.
inline float flush_result(float a, float b, float sum, float result) {
  constexpr double kLeast = 0x1p-126 * (1 - 0x1p-25);
  if (std::abs(result) != 0x1p-126f) return flush(result);
  const double sign = std::copysign(1.0, double{result});
  return sign * std::fma(double{a}, double{b}, double{sum} - sign * kLeast) < 0 ? std::copysign(0.0f, result) : result;
}

HWY_INLINE FloatVec flush(FloatVec x) {
  const FloatTag tag;
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(tag, 0x1p-126f)), hn::CopySign(hn::Zero(tag), x), x);
}

HWY_NOINLINE void flush_lanes(const float* a, const float* b, const float* sums, float* results) {
  for (size_t i = 0; i < kLanes; ++i) results[i] = flush_result(a[i], b[i], sums[i], results[i]);
}

// flush(fma(a, b, sum)); few results are small, but many are 0.
HWY_INLINE FloatVec step(FloatVec a, FloatVec b, FloatVec sum) {
  const FloatTag tag;
  const FloatVec result = hn::MulAdd(a, b, sum), size = hn::Abs(result);
  const auto small = hn::And(hn::Le(size, hn::Set(tag, 0x1p-126f)), hn::Gt(size, hn::Zero(tag)));
  if (hn::AllFalse(tag, small)) return result;
  alignas(64) float lanes[4][kVirtualLanes];
  hn::Store(a, tag, lanes[0]), hn::Store(b, tag, lanes[1]), hn::Store(sum, tag, lanes[2]);
  hn::Store(result, tag, lanes[3]);
  flush_lanes(lanes[0], lanes[1], lanes[2], lanes[3]);
  return hn::Load(tag, lanes[3]);
}

// Some rows of one panel, so that they share what they read of it.
template <size_t kRows>
HWY_INLINE void rows_of_panel(const PairProduct& p, size_t row, size_t panel) {
  const FloatTag tag;
  const hn::RebindToUnsigned<FloatTag> bits;
  const auto upper = hn::Set(bits, 0xffff0000u);
  const Pair* left = p.left + row * p.left_stride;
  for (size_t r = 0; r < kRegisters; ++r) {
    const Pair* columns = p.panels + panel * p.panel_stride + r * kLanes;
    float* output = p.output + row * p.output_stride + panel * kPanelWidth + r * kLanes;
    FloatVec sums[kRows];
    for (size_t i = 0; i < kRows; ++i) {
      sums[i] = p.accumulate ? flush(hn::LoadU(tag, output + i * p.output_stride)) : hn::Zero(tag);
    }
    for (size_t k = 0; k < p.pairs; ++k) {
      const auto pairs = hn::LoadU(bits, columns + k * kPanelWidth);
      const FloatVec first = flush(hn::BitCast(tag, hn::ShiftLeft<16>(pairs)));
      const FloatVec second = flush(hn::BitCast(tag, hn::And(pairs, upper)));
      for (size_t i = 0; i < kRows; ++i) {
        const Pair pair = left[i * p.left_stride + k];
        const float low = flush(std::bit_cast<float>(pair << 16)),
                    high = flush(std::bit_cast<float>(pair & 0xffff0000));
        sums[i] = step(hn::Set(tag, low), first, step(hn::Set(tag, high), second, sums[i]));
      }
    }
    for (size_t i = 0; i < kRows; ++i) {
      const FloatVec result = hn::MulAdd(sums[i], hn::Set(tag, p.factor), hn::Zero(tag));
      hn::StoreU(result, tag, output + i * p.output_stride);
      if (p.maxima == nullptr) continue;
      float* maxima = p.maxima + (row + i) * kPanelWidth + r * kLanes;
      hn::StoreU(hn::Max(hn::LoadU(tag, maxima), result), tag, maxima);
    }
  }
}

void pair_product(const PairProduct& p) {
  for (size_t panel = 0; panel < p.num_panels; ++panel) {
    size_t row = 0;
    for (; row + 4 <= p.rows; row += 4) rows_of_panel<4>(p, row, panel);
    for (; row < p.rows; ++row) rows_of_panel<1>(p, row, panel);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::kernels {
namespace {

HWY_EXPORT(is_avx512);
HWY_EXPORT(pair_product);

// A number as a bfloat16, in the lower half.
Pair rounded(float number) {
  const auto bits = std::bit_cast<uint32_t>(number);
  const uint32_t magnitude = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
  if (magnitude > 0x7f800000) return bits >> 16 | 0x40;
  if (magnitude < 0x00800000) return sign;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

Pair pair_of(float first, float second) { return rounded(first) | rounded(second) << 16; }

}  // namespace

bool has_pair_instruction() {
  static const bool available = instruction::available();
  return available && HWY_DYNAMIC_DISPATCH(is_avx512)();
}

void pair_product(const PairProduct& product) {
  has_pair_instruction() ? instruction::pair_product(product) : HWY_DYNAMIC_DISPATCH(pair_product)(product);
}

void pair_product_of_visible(const PairProduct& row, const uint8_t* visible) {
  std::fill_n(row.output, row.num_panels * kPanelWidth, 0.0f);
  for (size_t k = 0; k < row.pairs; ++k) {
    const Pair seen = (visible[2 * k] != 0 ? 0xffffu : 0) | (visible[2 * k + 1] != 0 ? 0xffff0000u : 0);
    for (size_t panel = 0; panel < row.num_panels && seen != 0; ++panel) {
      Pair values[kPanelWidth];
      const Pair* packed = row.panels + panel * row.panel_stride + k * kPanelWidth;
      std::transform(packed, packed + kPanelWidth, values, [seen](Pair pair) { return pair & seen; });
      const Pair weights = row.left[k] & seen;
      pair_product({.left = &weights,
                    .left_stride = 1,
                    .panels = values,
                    .panel_stride = kPanelWidth,
                    .output = row.output + panel * kPanelWidth,
                    .output_stride = kPanelWidth,
                    .rows = 1,
                    .pairs = 1,
                    .num_panels = 1,
                    .accumulate = true});
    }
  }
}

void round_to_pairs(const float* numbers, size_t stride, size_t rows, size_t columns, Pair* pairs, size_t pair_stride) {
  if (has_pair_instruction()) return instruction::round_to_pairs(numbers, stride, rows, columns, pairs, pair_stride);
  for (size_t row = 0; row < rows; ++row) {
    const float* from = numbers + row * stride;
    for (size_t i = 0; i < columns; i += 2) {
      pairs[row * pair_stride + i / 2] = pair_of(from[i], i + 1 < columns ? from[i + 1] : 0.0f);
    }
  }
}

void round_powers(const float* powers, size_t stride, size_t rows, size_t begin, size_t end, Pair* pairs,
                  size_t pair_stride, float* sums) {
  if (has_pair_instruction()) {
    return instruction::round_powers(powers, stride, rows, begin, end, pairs, pair_stride, sums);
  }
  constexpr size_t kLanes = 16;
  for (size_t row = 0; row < rows; ++row) {
    const float* from = powers + row * stride;
    float lanes[kLanes] = {};
    for (size_t i = begin; i < end; i += 2) {
      const Pair pair = pair_of(from[i], i + 1 < end ? from[i + 1] : 0.0f);
      pairs[row * pair_stride + i / 2] = pair;
      float& lane = lanes[i / 2 % kLanes];
      lane += std::bit_cast<float>(pair & 0xffff0000u);
      lane += std::bit_cast<float>(pair << 16);
    }
    for (size_t width = kLanes / 2; width > 0; width /= 2) {
      for (size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
    }
    sums[row] = lanes[0];
  }
}

void pack_columns_to_pairs(const float* matrix, size_t stride, size_t depth, size_t columns, std::span<Pair> panels) {
  Pair* packed = panels.data();
  for (size_t first = 0; first < columns; first += kPanelWidth, packed += pair_count(depth) * kPanelWidth) {
    const size_t width = std::min(kPanelWidth, columns - first);
    if (has_pair_instruction()) {
      instruction::pack_column_panel(matrix + first, stride, depth, width, packed);
      continue;
    }
    std::fill_n(packed, pair_count(depth) * kPanelWidth, Pair{0});
    for (size_t k = 0; k < depth; k += 2) {
      const float* row = matrix + k * stride + first;
      for (size_t j = 0; j < width; ++j) {
        packed[k / 2 * kPanelWidth + j] = pair_of(row[j], k + 1 < depth ? row[stride + j] : 0.0f);
      }
    }
  }
}

void pack_rows_to_pairs(const float* matrix, size_t stride, size_t depth, size_t columns, std::span<Pair> panels) {
  Pair* packed = panels.data();
  for (size_t first = 0; first < columns; first += kPanelWidth, packed += pair_count(depth) * kPanelWidth) {
    const size_t width = std::min(kPanelWidth, columns - first);
    if (has_pair_instruction()) {
      instruction::pack_row_panel(matrix + first * stride, stride, depth, width, packed);
      continue;
    }
    std::fill_n(packed, pair_count(depth) * kPanelWidth, Pair{0});
    for (size_t j = 0; j < width; ++j) {
      const float* row = matrix + (first + j) * stride;
      for (size_t k = 0; k < depth; k += 2) {
        packed[k / 2 * kPanelWidth + j] = pair_of(row[k], k + 1 < depth ? row[k + 1] : 0.0f);
      }
    }
  }
}

bool all_finite(std::span<const Pair> pairs) {
  if (has_pair_instruction()) return instruction::all_finite(pairs.data(), pairs.size());
  Pair found = 0;  // an exponent of ones gives a carry
  for (Pair pair : pairs) found |= ((pair & 0x7f807f80u) + 0x00800080u) & 0x80008000u;
  return found == 0;
}

}  // namespace clearhead::kernels
#endif
