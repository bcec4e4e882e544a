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

// The 16 outputs of one row and panel.
struct Sums {
  FloatVec lanes[kRegisters];
};

// The instruction looks at a result whose exponent is not yet limited: one that rounds to 2^-126 only because steps are
// wider below is flushed too. The difference to the first number that does not is exact in double.
inline float flush_edge(float a, float b, float sum, float result) {
  constexpr double kLeast = 0x1p-126 * (1 - 0x1p-25);
  const double sign = std::copysign(1.0, double{result});
  return sign * std::fma(double{a}, double{b}, double{sum} - sign * kLeast) < 0 ? std::copysign(0.0f, result) : result;
}

// Numbers below 2^-126 become zeros of their sign.
HWY_INLINE FloatVec flush(FloatVec x) {
  const FloatTag tag;
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(tag, 0x1p-126f)), hn::CopySign(hn::Zero(tag), x), x);
}

// flush(fma(a, b, sum))
HWY_INLINE FloatVec step(FloatVec a, FloatVec b, FloatVec sum) {
  const FloatTag tag;
  const FloatVec result = flush(hn::MulAdd(a, b, sum));
  if (hn::AllFalse(tag, hn::Eq(hn::Abs(result), hn::Set(tag, 0x1p-126f)))) return result;
  alignas(64) float lanes[4][kVirtualLanes];
  hn::Store(a, tag, lanes[0]), hn::Store(b, tag, lanes[1]), hn::Store(sum, tag, lanes[2]);
  hn::Store(result, tag, lanes[3]);
  for (size_t i = 0; i < kLanes; ++i) {
    if (std::abs(lanes[3][i]) == 0x1p-126f)
      lanes[3][i] = flush_edge(lanes[0][i], lanes[1][i], lanes[2][i], lanes[3][i]);
  }
  return hn::Load(tag, lanes[3]);
}

// The halves of pairs as floats.
template <class Pairs>
HWY_INLINE FloatVec first_of(Pairs pairs) {
  return flush(hn::BitCast(FloatTag(), hn::ShiftLeft<16>(pairs)));
}
template <class Pairs>
HWY_INLINE FloatVec second_of(Pairs pairs) {
  const hn::RebindToUnsigned<FloatTag> bits;
  return flush(hn::BitCast(FloatTag(), hn::And(pairs, hn::Set(bits, 0xffff0000u))));
}

void pair_product(const PairProduct& p) {
  const FloatTag tag;
  const hn::RebindToUnsigned<FloatTag> bits;
  for (size_t unit = 0; unit < p.rows * p.num_panels; ++unit) {
    const size_t row = unit / p.num_panels, panel = unit % p.num_panels;
    float* output = p.output + row * p.output_stride + panel * kPanelWidth;
    Sums sums;
    for (size_t r = 0; r < kRegisters; ++r) {
      sums.lanes[r] = p.accumulate ? flush(hn::LoadU(tag, output + r * kLanes)) : hn::Zero(tag);
    }
    for (size_t k = 0; k < p.pairs; ++k) {
      const auto element = hn::Set(bits, p.left[row * p.left_stride + k]);
      const FloatVec first = first_of(element), second = second_of(element);
      for (size_t r = 0; r < kRegisters; ++r) {
        const auto columns = hn::LoadU(bits, p.panels + panel * p.panel_stride + k * kPanelWidth + r * kLanes);
        sums.lanes[r] = step(first, first_of(columns), step(second, second_of(columns), sums.lanes[r]));
      }
    }
    for (size_t r = 0; r < kRegisters; ++r) {
      hn::StoreU(hn::MulAdd(sums.lanes[r], hn::Set(tag, p.factor), hn::Zero(tag)), tag, output + r * kLanes);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::kernels {
namespace {

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
#if HWY_ARCH_X86
  return available && (hwy::SupportedTargets() & (HWY_AVX3 | HWY_AVX3_DL)) != 0;
#else
  return available;
#endif
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
  Pair found = 0;  // an exponent of ones gives a carry
  for (Pair pair : pairs) found |= ((pair & 0x7f807f80u) + 0x00800080u) & 0x80008000u;
  return found == 0;
}

}  // namespace clearhead::kernels
#endif
