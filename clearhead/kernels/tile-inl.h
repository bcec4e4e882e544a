// SPDX-License-Identifier: Apache-2.0
// The micro-kernel that products and attention share. See tile.h for what it promises.
#if defined(CLEARHEAD_KERNELS_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_KERNELS_TILE_INL_H
#undef CLEARHEAD_KERNELS_TILE_INL_H
#else
#define CLEARHEAD_KERNELS_TILE_INL_H
#endif

#include <hwy/highway.h>
#include <algorithm>
#include <cstddef>
#include <utility>

#include "clearhead/kernels/tile.h"
#include "clearhead/kernels/virtual_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

// Accumulators of kRows x kPanels outputs of 16 stay in registers over the whole depth.
template <size_t kRows, size_t kPanels, bool kAccumulate>
HWY_NOINLINE void tile(const TileProduct& t, size_t row, size_t panel) {
  constexpr size_t kVectors = kPanels * kRegisters;
  const FloatTag tag;
  const float* HWY_RESTRICT left = t.left + row * t.left_stride;
  const float* HWY_RESTRICT right = t.panels + panel * t.panel_stride;
  float* HWY_RESTRICT output = t.output + row * t.output_stride + panel * kPanelWidth;
  const size_t left_stride = t.left_stride, panel_stride = t.panel_stride;

  FloatVec sums[kRows][kVectors];
  if constexpr (kAccumulate) {
    for (size_t i = 0; i < kRows; ++i) {
      for (size_t v = 0; v < kVectors; ++v) sums[i][v] = hn::LoadU(tag, output + i * t.output_stride + v * kLanes);
    }
  } else {
    for (size_t i = 0; i < kRows; ++i) {
      for (size_t v = 0; v < kVectors; ++v) sums[i][v] = hn::Zero(tag);
    }
  }
  for (size_t k = 0; k < t.depth; ++k) {
    FloatVec columns[kVectors];
    for (size_t v = 0; v < kVectors; ++v) {
      columns[v] =
          hn::LoadU(tag, right + (v / kRegisters) * panel_stride + k * kPanelWidth + (v % kRegisters) * kLanes);
    }
    for (size_t i = 0; i < kRows; ++i) {
      const FloatVec element = hn::Set(tag, left[i * left_stride + k]);
      for (size_t v = 0; v < kVectors; ++v) sums[i][v] = hn::MulAdd(element, columns[v], sums[i][v]);
    }
  }
  if (t.add_zero) {
    for (size_t i = 0; i < kRows; ++i) {
      for (size_t v = 0; v < kVectors; ++v) sums[i][v] = hn::Add(sums[i][v], hn::Zero(tag));
    }
  }
  if (t.row_factors != nullptr) {
    for (size_t i = 0; i < kRows; ++i) {
      const FloatVec factor = hn::Set(tag, t.row_factors[row + i]);
      for (size_t v = 0; v < kVectors; ++v) sums[i][v] = canonical(hn::Mul(sums[i][v], factor));
    }
  }
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t v = 0; v < kVectors; ++v) hn::StoreU(sums[i][v], tag, output + i * t.output_stride + v * kLanes);
  }
  if (t.maxima == nullptr) return;
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t r = 0; r < kRegisters; ++r) {
      float* maxima = t.maxima + (row + i) * kPanelWidth + r * kLanes;
      FloatVec largest = hn::LoadU(tag, maxima);
      for (size_t v = r; v < kVectors; v += kRegisters) largest = hn::Max(largest, sums[i][v]);
      hn::StoreU(largest, tag, maxima);
    }
  }
}

// Most rows of a tile kPanels wide: as many as the registers hold, at most 12; 0 if not even one fits.
// AVX-512 and NEON have 32 registers, the others 16.
template <size_t kPanels>
constexpr size_t most_rows() {
  constexpr size_t kAccumulators = (HWY_ARCH_ARM || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL) ? 24 : 12;
  constexpr size_t kRows = std::min<size_t>(12, kAccumulators / (kPanels * kRegisters));
  return kPanels == 1 ? std::max<size_t>(1, kRows) : kRows;
}

// Rows of the next tile when rest are left: the last two tiles share evenly, for a tile of few rows leaves the machine
// idle.
constexpr size_t next_rows(size_t rest, size_t most) {
  if (rest <= most) return rest;
  return rest < 2 * most ? (rest + 1) / 2 : most;
}

// Rows of a tile of a depth. The fewer accumulators, the sooner the next tile begins where this one ends: so much is
// won by as few as keep the machine busy, unless columns are read again too often.
template <size_t kPanels>
constexpr size_t preferred_rows(size_t depth) {
  constexpr size_t kMost = most_rows<kPanels>();
  constexpr size_t kFew = kPanels == 4 ? 4 : 6;
  return depth > 128 ? kMost : std::min(kMost, kFew);
}

// All rows of kPanels panels.
template <size_t kPanels, bool kAccumulate>
HWY_INLINE void tiles_of_panels(const TileProduct& t, size_t panel) {
  constexpr size_t kMost = most_rows<kPanels>();
  const size_t preferred = preferred_rows<kPanels>(t.depth);
  for (size_t row = 0; row < t.rows;) {
    const size_t rows = next_rows(t.rows - row, preferred);
    [&]<size_t... kRows>(std::index_sequence<kRows...>) HWY_ATTR {
      ((rows == kRows + 1 ? tile<kRows + 1, kPanels, kAccumulate>(t, row, panel) : void()), ...);
    }(std::make_index_sequence<kMost>());
    row += rows;
  }
}

// Panels to take together: few rows want wide tiles, and AVX-512 has room for them always.
HWY_INLINE size_t preferred_panels(size_t rows) {
  if (most_rows<4>() > 1 || rows <= most_rows<4>()) return 4;
  return rows <= most_rows<2>() ? 2 : 1;
}

template <bool kAccumulate>
HWY_INLINE void tiles_of_product(const TileProduct& t) {
  const size_t preferred = preferred_panels(t.rows);
  size_t panel = 0;
  if constexpr (most_rows<4>() > 0) {
    for (; preferred == 4 && panel + 4 <= t.num_panels; panel += 4) tiles_of_panels<4, kAccumulate>(t, panel);
  }
  if constexpr (most_rows<2>() > 0) {
    for (; preferred >= 2 && panel + 2 <= t.num_panels; panel += 2) tiles_of_panels<2, kAccumulate>(t, panel);
  }
  for (; panel < t.num_panels; ++panel) tiles_of_panels<1, kAccumulate>(t, panel);
}

HWY_INLINE void tile_product_inline(const TileProduct& t) {
  t.accumulate ? tiles_of_product<true>(t) : tiles_of_product<false>(t);
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();
#endif
