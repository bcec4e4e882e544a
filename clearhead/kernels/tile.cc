// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/tile.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/kernels/tile.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

void tile_product(const TileProduct& product) { tile_product_inline(product); }

#if HWY_TARGET != HWY_SCALAR
// Rows of lanes / 4 blocks: block b is 4 floats of row 4 b.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const float* x, size_t stride) {
  if constexpr (hn::MaxLanes(d) <= 4) {
    return hn::LoadU(d, x);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_blocks(half, x + hn::MaxLanes(d) / 2 * stride, stride), load_blocks(half, x, stride));
  }
}

// packed[k * 16 + j] = x[j * stride + k] for 4 k and 16 j, by transposing blocks of 4 x 4.
HWY_INLINE void transpose_4_by_16(const float* x, size_t stride, float* packed) {
  const FloatTag tag;
  for (size_t first = 0; first < kPanelWidth; first += kLanes, x += kLanes * stride, packed += kLanes) {
    const FloatVec a = load_blocks(tag, x, stride), b = load_blocks(tag, x + stride, stride);
    const FloatVec c = load_blocks(tag, x + 2 * stride, stride), d = load_blocks(tag, x + 3 * stride, stride);
    const FloatVec low_even = hn::InterleaveLower(tag, a, c), low_odd = hn::InterleaveLower(tag, b, d);
    const FloatVec high_even = hn::InterleaveUpper(tag, a, c), high_odd = hn::InterleaveUpper(tag, b, d);
    hn::StoreU(hn::InterleaveLower(tag, low_even, low_odd), tag, packed);
    hn::StoreU(hn::InterleaveUpper(tag, low_even, low_odd), tag, packed + kPanelWidth);
    hn::StoreU(hn::InterleaveLower(tag, high_even, high_odd), tag, packed + 2 * kPanelWidth);
    hn::StoreU(hn::InterleaveUpper(tag, high_even, high_odd), tag, packed + 3 * kPanelWidth);
  }
}

#endif

// One whole panel of pack_rows.
void pack_panel(const float* matrix, size_t stride, size_t depth, float* packed) {
  size_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; k + 4 <= depth; k += 4) transpose_4_by_16(matrix + k, stride, packed + k * kPanelWidth);
#endif
  for (size_t column = 0; column < kPanelWidth; ++column) {
    for (size_t rest = k; rest < depth; ++rest) packed[rest * kPanelWidth + column] = matrix[column * stride + rest];
  }
}

bool all_finite(const float* matrix, size_t stride, size_t rows, size_t columns) {
  const FloatTag tag;
  FloatVec sums = hn::Zero(tag);  // of 0 times each element: NaN if one is not finite
  float rest = 0;
  for (size_t row = 0; row < rows; ++row, matrix += stride) {
    size_t i = 0;
    for (; i + kLanes <= columns; i += kLanes) sums = hn::MulAdd(hn::LoadU(tag, matrix + i), hn::Zero(tag), sums);
    for (; i < columns; ++i) rest += 0.0f * matrix[i];
  }
  return rest == 0 && hn::AllTrue(tag, hn::Eq(sums, hn::Zero(tag)));
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::kernels {

HWY_EXPORT(tile_product);
HWY_EXPORT(pack_panel);
HWY_EXPORT(all_finite);

void tile_product(const TileProduct& product) { HWY_DYNAMIC_DISPATCH(tile_product)(product); }

void pack_columns(const float* matrix, size_t stride, size_t depth, size_t columns, std::span<float> panels) {
  float* packed = panels.data();
  size_t first = 0;
  for (; first + kPanelWidth <= columns; first += kPanelWidth) {
    for (size_t k = 0; k < depth; ++k, packed += kPanelWidth) {
      std::memcpy(packed, matrix + k * stride + first, kPanelWidth * sizeof(float));
    }
  }
  for (size_t k = 0; first < columns && k < depth; ++k, packed += kPanelWidth) {
    std::copy_n(matrix + k * stride + first, columns - first, packed);
    std::fill(packed + (columns - first), packed + kPanelWidth, 0.0f);
  }
}

void pack_rows(const float* matrix, size_t stride, size_t depth, size_t columns, std::span<float> panels) {
  float* packed = panels.data();
  size_t first = 0;
  for (; first + kPanelWidth <= columns; first += kPanelWidth, packed += depth * kPanelWidth) {
    HWY_DYNAMIC_DISPATCH(pack_panel)(matrix + first * stride, stride, depth, packed);
  }
  for (size_t column = 0; first < columns && column < kPanelWidth; ++column) {
    const float* row = matrix + (first + column) * stride;
    for (size_t k = 0; k < depth; ++k) packed[k * kPanelWidth + column] = first + column < columns ? row[k] : 0.0f;
  }
}

bool all_finite(const float* matrix, size_t stride, size_t rows, size_t columns) {
  return HWY_DYNAMIC_DISPATCH(all_finite)(matrix, stride, rows, columns);
}

}  // namespace clearhead::kernels
#endif
