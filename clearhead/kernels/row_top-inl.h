// SPDX-License-Identifier: Apache-2.0
// The keys with the largest scores of at most 16 rows, tile by tile: a score is compared with a bound that the row's
// strongest keys have passed already, so that few keys become candidates.
#if defined(CLEARHEAD_KERNELS_ROW_TOP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_KERNELS_ROW_TOP_INL_H
#undef CLEARHEAD_KERNELS_ROW_TOP_INL_H
#else
#define CLEARHEAD_KERNELS_ROW_TOP_INL_H
#endif

#include <hwy/highway.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "clearhead/kernels/attention_tile.h"
#include "clearhead/kernels/row_collect.h"
#include "clearhead/kernels/row_lanes-inl.h"
#include "clearhead/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {

// Two of 16 places: the larger number goes to the first.
struct Exchange {
  uint8_t first, second;
};

// Batcher's odd-even merge sort of 16 numbers. Source: Knuth, The Art of Computer Programming 3, section 5.2.2.
constexpr std::array<Exchange, 63> sorting_network() {
  std::array<Exchange, 63> exchanges{};
  size_t count = 0;
  for (size_t p = 1; p < kVirtualLanes; p *= 2) {
    for (size_t k = p; k > 0; k /= 2) {
      for (size_t j = k % p; j + k < kVirtualLanes; j += 2 * k) {
        for (size_t i = j; i < std::min(j + k, kVirtualLanes - k); ++i) {
          if (i / (2 * p) != (i + k) / (2 * p)) continue;
          exchanges[count++] = {static_cast<uint8_t>(i), static_cast<uint8_t>(i + k)};
        }
      }
    }
  }
  return exchanges;
}

// Sorts 16 numbers that fall, then rise.
constexpr std::array<Exchange, 32> bitonic_network() {
  std::array<Exchange, 32> exchanges{};
  size_t count = 0;
  for (size_t k = kVirtualLanes / 2; k > 0; k /= 2) {
    for (size_t i = 0; i < kVirtualLanes; ++i) {
      if ((i & k) == 0) exchanges[count++] = {static_cast<uint8_t>(i), static_cast<uint8_t>(i + k)};
    }
  }
  return exchanges;
}

inline constexpr auto kSortingNetwork = sorting_network();
inline constexpr auto kBitonicNetwork = bitonic_network();

HWY_INLINE void exchange(FloatVec& first, FloatVec& second) {
  const FloatVec larger = hn::Max(first, second);
  second = hn::Min(first, second);
  first = larger;
}

template <const auto& kNetwork, size_t... kStep>
HWY_INLINE void run_network(FloatVec (&v)[kVirtualLanes], std::index_sequence<kStep...>) {
  (exchange(v[kNetwork[kStep].first], v[kNetwork[kStep].second]), ...);
}

// The smallest float above x; of -infinity the lowest finite one.
HWY_INLINE FloatVec next_above(FloatVec x) {
  const hn::RebindToSigned<FloatTag> integers;
  const auto bits = hn::BitCast(integers, hn::Add(x, hn::Zero(FloatTag())));  // -0 becomes 0
  const auto step = hn::Or(hn::ShiftRight<31>(bits), hn::Set(integers, 1));
  return hn::BitCast(FloatTag(), hn::Add(bits, step));
}

// order_scores whatever the scores.
inline HWY_NOINLINE void sort_scores(const float* scores, size_t size, size_t count, uint32_t* order) {
  const auto before = [scores](uint32_t a, uint32_t b) {
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
  };
  std::iota(order, order + size, 0u);
  if (count < size) std::nth_element(order, order + count, order + size, before);
  std::sort(order, order + count, before);
}

// How many scores are larger than each. Shapes: scores [16 kGroups], of which size count; ranks [16 kGroups].
template <size_t kGroups>
HWY_INLINE void rank_scores(const float* scores, size_t size, uint32_t* ranks) {
  constexpr size_t kVectors = kGroups * kRegisters;
  const FloatTag tag;
  const hn::RebindToUnsigned<FloatTag> integers;
  FloatVec x[kVectors];
  hn::Vec<decltype(integers)> rank[kVectors];
  for (size_t v = 0; v < kVectors; ++v) {
    x[v] = hn::LoadU(tag, scores + v * kLanes);
    rank[v] = hn::Zero(integers);
  }
  for (size_t j = 0; j < size; ++j) {
    const FloatVec one = hn::Set(tag, scores[j]);
    for (size_t v = 0; v < kVectors; ++v) {  // a mask is -1
      rank[v] = hn::Sub(rank[v], hn::BitCast(integers, hn::VecFromMask(tag, hn::Gt(one, x[v]))));
    }
  }
  for (size_t v = 0; v < kVectors; ++v) hn::StoreU(rank[v], integers, ranks + v * kLanes);
}

// The places of the count largest scores, in falling order, of equal ones the lower place first; count is at most size.
// Room for candidates behind size may hold anything.
HWY_INLINE void order_scores(const float* scores, size_t size, size_t count, uint32_t* order) {
  constexpr size_t kCounted = 64;  // up to here, counting how many are larger is faster than sorting
  if (size <= kCounted) {
    constexpr uint32_t kNobody = UINT32_MAX;
    uint32_t ranks[kCounted];
    if (size <= 16)
      rank_scores<1>(scores, size, ranks);
    else if (size <= 32)
      rank_scores<2>(scores, size, ranks);
    else
      rank_scores<4>(scores, size, ranks);
    const size_t checked = std::min(count + 1, size);
    std::fill_n(order, checked, kNobody);
    for (size_t i = 0; i < size; ++i) order[ranks[i]] = static_cast<uint32_t>(i);
    bool distinct = true;  // equal scores share a rank, and nobody has the next
    for (size_t i = 0; i < checked; ++i) distinct = distinct && order[i] != kNobody;
    if (distinct) return;
  }
  sort_scores(scores, size, count, order);
}

class TopCollector {
 public:
  // Of rows from row on; first_key is that of the scores.
  TopCollector(const TopOfRows& top, size_t row, size_t first_key) : top_(top), row_(row), first_key_(first_key) {}

  // scores [rows, count], count a multiple of 16; lanes: the largest of each virtual lane; largest: of each row.
  HWY_INLINE void see(const RowLanes& lanes, const float* largest, const float* scores, size_t rows, size_t count) {
    alignas(64) float bounds[kVirtualLanes];
    find_bounds(lanes, rows, bounds);
    for (size_t i = 0; i < rows; ++i) {
      if (largest[i] >= bounds[i]) take(row_ + i, scores + i * kScoreStride, count, bounds[i]);
    }
  }

 private:
  // What a score of each row must have at least. The count-th largest of the virtual lanes' own largest scores, of all
  // tiles so far, is one that count keys have; where it stands already, keys of this tile must be above it.
  HWY_INLINE void find_bounds(const RowLanes& lanes, size_t rows, float* bounds) {
    const FloatTag tag;
    if (top_.count > kVirtualLanes) {
      for (size_t i = 0; i < kVirtualLanes; i += kLanes) {
        hn::Store(next_above(hn::LoadU(tag, top_.bound + row_ + i)), tag, bounds + i);
      }
      return;
    }
    alignas(64) float columns[kVirtualLanes][kVirtualLanes];
    lanes.transpose(columns);
    for (size_t i = 0; i < kVirtualLanes; i += kLanes) {
      const auto there = hn::FirstN(tag, std::clamp(rows, i, i + kLanes) - i);
      FloatVec own[kVirtualLanes], merged[kVirtualLanes];
      for (size_t k = 0; k < kVirtualLanes; ++k) {
        own[k] = hn::IfThenElse(there, hn::Load(tag, columns[k] + i), hn::Set(tag, -kInfinity));
      }
      run_network<kSortingNetwork>(own, std::make_index_sequence<kSortingNetwork.size()>());
      float* kept = top_.largest + row_ + i;
      const FloatVec before = hn::LoadU(tag, kept + (top_.count - 1) * kRowStride);
      for (size_t k = 0; k < kVirtualLanes; ++k) {
        merged[k] = hn::Max(hn::LoadU(tag, kept + k * kRowStride), own[kVirtualLanes - 1 - k]);
      }
      run_network<kBitonicNetwork>(merged, std::make_index_sequence<kBitonicNetwork.size()>());
      for (size_t k = 0; k < kVirtualLanes; ++k) hn::StoreU(merged[k], tag, kept + k * kRowStride);
      const FloatVec after = hn::LoadU(tag, kept + (top_.count - 1) * kRowStride);
      hn::Store(hn::IfThenElse(hn::Gt(after, before), after, next_above(before)), tag, bounds + i);
    }
  }

  // Keys whose scores are at least bound become candidates.
  HWY_INLINE void take(size_t row, const float* scores, size_t count, float bound) {
    const FloatTag tag;
    const bool unbounded = top_.count > kVirtualLanes && top_.bound[row] == -kInfinity;
    if (top_.found[row] > kTopWaiting || (unbounded && top_.found[row] >= top_.count)) {
      thin_out(row);
      if (top_.count > kVirtualLanes) bound = hn::GetLane(next_above(hn::Set(tag, top_.bound[row])));
    }
    float* kept = top_.scores + row * kTopRoom;
    uint32_t* keys = top_.keys + row * kTopRoom;
    size_t found = top_.found[row];
    const FloatVec least = hn::Set(tag, bound);
    for (size_t first = 0; first < count; first += 64) {
      uint64_t above = keys_above(scores + first, std::min<size_t>(64, count - first), least);
      const size_t end = found + static_cast<size_t>(std::popcount(above));
      const auto take_next = [&] {
        const size_t i = first + static_cast<size_t>(std::countr_zero(above));
        kept[found] = scores[i];
        keys[found++] = static_cast<uint32_t>(first_key_ + i);
        above &= above - 1;
      };
      for (size_t i = 0; i < kUsual; ++i) take_next();  // also where there are less, for a branch would be missed
      while (found < end) take_next();
      found = end;
    }
    top_.found[row] = static_cast<uint32_t>(found);
  }

  // Bit i: whether the score of key i, of at most 64, is at least that.
  static HWY_INLINE uint64_t keys_above(const float* scores, size_t count, FloatVec least) {
    const FloatTag tag;
    uint64_t above = 0;
    if constexpr (kLanes >= 8) {
      uint8_t bits[8] = {};
      if (count == 64) {
        for (size_t i = 0; i < 64; i += kLanes) {
          hn::StoreMaskBits(tag, hn::Ge(hn::LoadU(tag, scores + i), least), bits + i / 8);
        }
      } else {
        for (size_t i = 0; i < count; i += kLanes) {
          hn::StoreMaskBits(tag, hn::Ge(hn::LoadU(tag, scores + i), least), bits + i / 8);
        }
      }
      std::memcpy(&above, bits, sizeof(above));
    } else {
      for (size_t i = 0; i < count; i += kLanes) {
        uint8_t bits[8] = {};
        hn::StoreMaskBits(tag, hn::Ge(hn::LoadU(tag, scores + i), least), bits);
        above |= static_cast<uint64_t>(bits[0]) << i;
      }
    }
    return above;
  }

  // Leaves the count best candidates, in rising order of keys as before.
  HWY_NOINLINE void thin_out(size_t row) {
    float* scores = top_.scores + row * kTopRoom;
    uint32_t* keys = top_.keys + row * kTopRoom;
    uint32_t order[kTopRoom];
    order_scores(scores, top_.found[row], top_.count, order);
    top_.bound[row] = scores[order[top_.count - 1]];
    std::sort(order, order + top_.count);
    for (size_t i = 0; i < top_.count; ++i) {
      scores[i] = scores[order[i]];
      keys[i] = keys[order[i]];
    }
    top_.found[row] = static_cast<uint32_t>(top_.count);
  }

  static constexpr size_t kUsual = 4;  // candidates among 64 keys

  const TopOfRows& top_;
  size_t row_, first_key_;
};

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();
#endif
