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

// A row of panels, 16 columns after 16, the last of them filled up with zeros; returns 0 times the sum of all elements,
// which is NaN if one is not finite.
HWY_INLINE FloatVec pack_row(const float* row, size_t columns, float* packed, size_t panel_stride) {
  const FloatTag tag;
  FloatVec sums[kRegisters];
  std::fill_n(sums, kRegisters, hn::Zero(tag));
  const auto pack = [&](const float* source, float* place) HWY_ATTR {
    for (size_t r = 0; r < kRegisters; ++r) {
      const FloatVec values = hn::LoadU(tag, source + r * kLanes);
      hn::StoreU(values, tag, place + r * kLanes);
      sums[r] = hn::MulAdd(values, hn::Zero(tag), sums[r]);
    }
  };
  size_t first = 0;
  for (; first + kPanelWidth <= columns; first += kPanelWidth, packed += panel_stride) pack(row + first, packed);
  if (first < columns) {
    alignas(64) float tail[kPanelWidth] = {};
    std::copy(row + first, row + columns, tail);
    pack(tail, packed);
  }
  FloatVec sum = sums[0];
  for (size_t r = 1; r < kRegisters; ++r) sum = hn::Add(sum, sums[r]);
  return sum;
}

bool pack_values(const float* matrix, size_t stride, size_t depth, size_t columns, float* panels, size_t panel_stride) {
  const FloatTag tag;
  constexpr size_t kSums = 4;  // so that additions need not wait for each other
  FloatVec sums[kSums];
  std::fill_n(sums, kSums, hn::Zero(tag));
  for (size_t k = 0; k < depth; ++k) {
    const FloatVec sum = pack_row(matrix + k * stride, columns, panels + k * kPanelWidth, panel_stride);
    sums[k % kSums] = hn::Add(sums[k % kSums], sum);
  }
  const FloatVec sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return hn::AllTrue(tag, hn::Eq(sum, hn::Zero(tag)));
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::kernels {

HWY_EXPORT(tile_product);
HWY_EXPORT(pack_panel);
HWY_EXPORT(pack_values);

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

bool pack_values(const float* matrix, size_t stride, size_t depth, size_t columns, float* panels, size_t panel_stride) {
  return HWY_DYNAMIC_DISPATCH(pack_values)(matrix, stride, depth, columns, panels, panel_stride);
}

}  // namespace clearhead::kernels
#endif
