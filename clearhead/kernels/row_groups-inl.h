// SPDX-License-Identifier: Apache-2.0
// What at most 16 rows see of groups of keys, tile by tile.
#if defined(CLEARHEAD_KERNELS_ROW_GROUPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_KERNELS_ROW_GROUPS_INL_H
#undef CLEARHEAD_KERNELS_ROW_GROUPS_INL_H
#else
#define CLEARHEAD_KERNELS_ROW_GROUPS_INL_H
#endif

#include <hwy/highway.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "clearhead/kernels/attention_tile.h"
#include "clearhead/kernels/row_collect.h"
#include "clearhead/kernels/row_lanes-inl.h"
#include "clearhead/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

// 2^exponent for integers that are at most 0, 0 below -126 and for NaN (-infinity against -infinity).
HWY_INLINE FloatVec powers_of_two(FloatVec exponent) {
  const FloatTag tag;
  const hn::RebindToSigned<FloatTag> integers;
  const auto normal = hn::Ge(exponent, hn::Set(tag, -126.0f));
  const auto whole = hn::ConvertTo(integers, hn::IfThenElseZero(normal, exponent));
  const auto bits = hn::ShiftLeft<23>(hn::Add(whole, hn::Set(integers, 127)));
  return hn::IfThenElseZero(normal, hn::BitCast(tag, bits));
}

template <size_t kColumns>
HWY_INLINE std::array<RowLanes, kColumns> rows_of_lanes(size_t rows) {
  return [&]<size_t... kColumn>(std::index_sequence<kColumn...>) HWY_ATTR {
    return std::array<RowLanes, kColumns>{(static_cast<void>(kColumn), RowLanes(rows))...};
  }(std::make_index_sequence<kColumns>());
}

class GroupCollector {
 public:
  // Of rows from row on; first_key is that of the scores.
  GroupCollector(const GroupsOfRows& groups, const int64_t* positions, size_t row, size_t first_key)
      : groups_(groups), positions_(positions + row), row_(row), first_key_(first_key) {}

  // scores [rows, count]
  HWY_INLINE void gather(const float* scores, size_t rows, size_t count) const {
    const auto before = [](const GatheredKey& one, size_t key) { return one.key < key; };
    for (auto one = std::lower_bound(groups_.keys.begin(), groups_.keys.end(), first_key_, before);
         one != groups_.keys.end() && one->key < first_key_ + count; ++one) {
      float* slot = groups_.scores + one->slot * kRowStride + row_;
      for (size_t i = 0; i < rows; ++i) slot[i] = scores[i * kScoreStride + one->key - first_key_];
    }
    for (const GatheredDistance& one : groups_.distances) {
      float* slot = groups_.scores + one.slot * kRowStride + row_;
      const int64_t distance = one.distance - static_cast<int64_t>(first_key_);
      for (size_t i = 0; i < rows; ++i) {
        const size_t place = static_cast<size_t>(positions_[i] + distance);
        if (place < count) slot[i] = scores[i * kScoreStride + place];
      }
    }
  }

  // powers [rows, count], count a multiple of 16
  HWY_INLINE void add(const float* powers, size_t rows, size_t count, const RowSummary* summaries) const {
    if (groups_.columns == 0) return;
    const FloatTag tag;
    alignas(64) float references[kVirtualLanes], old[kVirtualLanes], added[kVirtualLanes];
    std::fill_n(references, kVirtualLanes, -kInfinity);
    for (size_t i = 0; i < rows; ++i) references[i] = summaries[i].reference;
    for (size_t i = 0; i < kVirtualLanes; i += kLanes) {
      float* kept = groups_.references + row_ + i;
      const FloatVec before = hn::LoadU(tag, kept), own = hn::Load(tag, references + i);
      const FloatVec after = hn::Max(before, own);
      hn::StoreU(after, tag, kept);
      hn::Store(powers_of_two(hn::Sub(before, after)), tag, old + i);
      hn::Store(powers_of_two(hn::Sub(own, after)), tag, added + i);
    }
    size_t column = 0;
    for (; column + 4 <= groups_.columns; column += 4) add_columns<4>(column, powers, rows, count, old, added);
    for (; column < groups_.columns; ++column) add_columns<1>(column, powers, rows, count, old, added);
  }

 private:
  template <size_t kColumns>
  HWY_INLINE void add_columns(size_t column, const float* powers, size_t rows, size_t count, const float* old,
                              const float* added) const {
    const FloatTag tag;
    const float* members = groups_.members + column * groups_.member_stride + first_key_;
    std::array<RowLanes, kColumns> lanes = rows_of_lanes<kColumns>(rows);
    for (size_t row = 0; row < rows; ++row) {
      VirtualLanes sums[kColumns];
      for (size_t i = 0; i < count; i += kVirtualLanes) {
        for (size_t r = 0; r < kRegisters; ++r) {
          const size_t place = i + r * kLanes;
          const FloatVec power = hn::LoadU(tag, powers + row * kScoreStride + place);
          for (size_t c = 0; c < kColumns; ++c) {
            sums[c].multiply_add(r, power, hn::LoadU(tag, members + c * groups_.member_stride + place));
          }
        }
      }
      for (size_t c = 0; c < kColumns; ++c) {
        for (size_t r = 0; r < kRegisters; ++r) lanes[c].set(row, r, sums[c].lanes(r));
      }
    }
    for (size_t c = 0; c < kColumns; ++c) {
      alignas(64) float masses[kVirtualLanes];
      lanes[c].fold([](FloatVec a, FloatVec b) HWY_ATTR { return hn::Add(a, b); }, masses);
      for (size_t i = 0; i < kVirtualLanes; i += kLanes) {
        float* sum = groups_.sums + (column + c) * kRowStride + row_ + i;
        const FloatVec kept = hn::Mul(hn::LoadU(tag, sum), hn::Load(tag, old + i));
        hn::StoreU(hn::MulAdd(hn::Load(tag, masses + i), hn::Load(tag, added + i), kept), tag, sum);
      }
    }
  }

  const GroupsOfRows& groups_;
  const int64_t* positions_;
  size_t row_, first_key_;
};

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();
#endif
