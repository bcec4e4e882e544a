// SPDX-License-Identifier: Apache-2.0
// Sums over 16 virtual lanes: one, two or four registers wide, always the same additions in the same order.
#if defined(CLEARHEAD_KERNELS_VIRTUAL_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_KERNELS_VIRTUAL_LANES_INL_H
#undef CLEARHEAD_KERNELS_VIRTUAL_LANES_INL_H
#else
#define CLEARHEAD_KERNELS_VIRTUAL_LANES_INL_H
#endif

#include <hwy/highway.h>
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kVirtualLanes = 16;
using FloatTag = hn::CappedTag<float, kVirtualLanes>;
using FloatVec = hn::Vec<FloatTag>;
constexpr size_t kLanes = hn::MaxLanes(FloatTag());
constexpr size_t kRegisters = kVirtualLanes / kLanes;  // 1 on AVX-512, 2 on AVX2, 4 on SSE4 and NEON

// The lanes of one vector: lane i with lane i + w for w = lanes / 2, ..., 2, 1.
template <class D, class Combine>
HWY_INLINE float fold_lanes([[maybe_unused]] D d, hn::Vec<D> v, [[maybe_unused]] const Combine& combine) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(d) > 1) {
    const hn::Half<D> half;
    return fold_lanes(half, combine(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), combine);
  }
#endif
  return hn::GetLane(v);
}

// Virtual lane i with lane i + w for w = 8, 4, 2, 1; returns lane 0.
template <class Combine>
HWY_INLINE float fold_registers(const FloatVec (&registers)[kRegisters], const Combine& combine) {
  FloatVec rest[kRegisters];
  std::copy_n(registers, kRegisters, rest);
  for (size_t width = kRegisters / 2; width > 0; width /= 2) {
    for (size_t r = 0; r < width; ++r) rest[r] = combine(rest[r], rest[r + width]);
  }
  return fold_lanes(FloatTag(), rest[0], combine);
}

// Partial sums: register r, lane i stand for virtual lane r * kLanes + i.
class VirtualLanes {
 public:
  VirtualLanes() { std::fill_n(sums_, kRegisters, hn::Zero(FloatTag())); }

  void add(size_t r, FloatVec a) { sums_[r] = hn::Add(sums_[r], a); }
  void multiply_add(size_t r, FloatVec a, FloatVec b) { sums_[r] = hn::MulAdd(a, b, sums_[r]); }

  FloatVec lanes(size_t r) const { return sums_[r]; }

  // Adds lane i + w to lane i for w = 8, 4, 2, 1.
  float fold() const {
    return fold_registers(sums_, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
  }

 private:
  FloatVec sums_[kRegisters];
};

// Calls visit(register, vector) over x in groups of 16; the last group is filled up with fill.
template <class Visit>
void for_each_group(const float* x, size_t count, float fill, Visit visit) {
  size_t i = 0;
  for (; i + kVirtualLanes <= count; i += kVirtualLanes) {
    for (size_t r = 0; r < kRegisters; ++r) visit(r, hn::LoadU(FloatTag(), x + i + r * kLanes));
  }
  if (i == count) return;
  alignas(64) float tail[kVirtualLanes];
  std::fill_n(tail, kVirtualLanes, fill);
  std::copy(x + i, x + count, tail);
  for (size_t r = 0; r < kRegisters; ++r) visit(r, hn::Load(FloatTag(), tail + r * kLanes));
}

// Every NaN as 0x7fc00000: which NaN an operation gives depends on the machine.
HWY_INLINE FloatVec canonical(FloatVec x) {
  return hn::IfThenElse(hn::IsNaN(x), hn::Set(FloatTag(), std::bit_cast<float>(uint32_t{0x7fc00000})), x);
}
inline float canonical(float x) { return x == x ? x : std::bit_cast<float>(uint32_t{0x7fc00000}); }

// The first count < kLanes elements of x, then zeros.
HWY_INLINE FloatVec load_tail(const float* x, size_t count) {
  alignas(64) float tail[kVirtualLanes] = {};
  std::copy_n(x, count, tail);
  return hn::Load(FloatTag(), tail);
}

// output[i] = canonical(map(inputs[i]...)), by vector operations in the tail as well, so that an element's bits do not
// depend on where it stands. output may be one of the inputs.
template <class Map, class... Inputs>
void map_elements(float* output, size_t count, Map map, const Inputs*... inputs) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(canonical(map(hn::LoadU(FloatTag(), inputs + i)...)), FloatTag(), output + i);
  }
  if (i == count) return;
  alignas(64) float tail[kVirtualLanes];
  hn::Store(canonical(map(load_tail(inputs + i, count - i)...)), FloatTag(), tail);
  std::copy_n(tail, count - i, output + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();
#endif
