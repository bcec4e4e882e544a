// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/tile.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/kernels/tile.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/tile-inl.h"
#include "clearhead/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

void tile_product(const TileProduct& product) { tile_product_inline(product); }

// One whole panel of pack_rows.
void pack_panel(const float* matrix, size_t stride, size_t depth, float* packed) {
  size_t k = 0;
  for (; k + 4 <= depth; k += 4) transpose_4_by_16(matrix + k, stride, packed + k * kPanelWidth);
  for (size_t column = 0; column < kPanelWidth; ++column) {
    for (size_t rest = k; rest < depth; ++rest) packed[rest * kPanelWidth + column] = matrix[column * stride + rest];
  }
}

bool all_finite(const float* matrix, size_t stride, size_t rows, size_t columns) {
  const FloatTag tag;
  constexpr size_t kSums = 4;  // so that additions need not wait for each other
  FloatVec sums[kSums];        // of 0 times each element: NaN if one is not finite
  std::fill_n(sums, kSums, hn::Zero(tag));
  float rest = 0;
  for (size_t row = 0; row < rows; ++row, matrix += stride) {
    size_t i = 0;
    for (; i + kSums * kLanes <= columns; i += kSums * kLanes) {
      for (size_t s = 0; s < kSums; ++s) {
        sums[s] = hn::MulAdd(hn::LoadU(tag, matrix + i + s * kLanes), hn::Zero(tag), sums[s]);
      }
    }
    for (; i + kLanes <= columns; i += kLanes) sums[0] = hn::MulAdd(hn::LoadU(tag, matrix + i), hn::Zero(tag), sums[0]);
    for (; i < columns; ++i) rest += 0.0f * matrix[i];
  }
  const FloatVec sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return rest == 0 && hn::AllTrue(tag, hn::Eq(sum, hn::Zero(tag)));
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
