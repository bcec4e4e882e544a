// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/tile.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/kernels/tile.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "clearhead/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

void tile_product(const TileProduct& product) { tile_product_inline(product); }

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::kernels {

HWY_EXPORT(tile_product);

void tile_product(const TileProduct& product) { HWY_DYNAMIC_DISPATCH(tile_product)(product); }

void pack_columns(const float* matrix, size_t stride, size_t depth, size_t columns, std::span<float> panels) {
  float* packed = panels.data();
  for (size_t first = 0; first < columns; first += kPanelWidth) {
    const size_t width = std::min(kPanelWidth, columns - first);
    for (size_t k = 0; k < depth; ++k, packed += kPanelWidth) {
      std::copy_n(matrix + k * stride + first, width, packed);
      std::fill(packed + width, packed + kPanelWidth, 0.0f);
    }
  }
}

void pack_rows(const float* matrix, size_t stride, size_t depth, size_t columns, std::span<float> panels) {
  float* packed = panels.data();
  for (size_t first = 0; first < columns; first += kPanelWidth, packed += depth * kPanelWidth) {
    const size_t width = std::min(kPanelWidth, columns - first);
    for (size_t column = 0; column < kPanelWidth; ++column) {
      const float* row = matrix + (first + column) * stride;
      for (size_t k = 0; k < depth; ++k) packed[k * kPanelWidth + column] = column < width ? row[k] : 0.0f;
    }
  }
}

}  // namespace clearhead::kernels
#endif
