// SPDX-License-Identifier: Apache-2.0
// Integer panels as vectors of floats, for products. See integer_panels.h for what stands in them.
#if defined(CLEARHEAD_LINEAR_INTEGER_PANELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEARHEAD_LINEAR_INTEGER_PANELS_INL_H
#undef CLEARHEAD_LINEAR_INTEGER_PANELS_INL_H
#else
#define CLEARHEAD_LINEAR_INTEGER_PANELS_INL_H
#endif

#include <hwy/highway.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "clearhead/kernels/half_floats-inl.h"
#include "clearhead/kernels/virtual_lanes-inl.h"
#include "clearhead/linear/integer_panels.h"

HWY_BEFORE_NAMESPACE();
namespace clearhead::linear {
namespace HWY_NAMESPACE {
namespace integers {
namespace hn = hwy::HWY_NAMESPACE;
namespace simd = kernels::HWY_NAMESPACE;

constexpr size_t kLanes = simd::kLanes, kRegisters = simd::kRegisters;
using FloatTag = simd::FloatTag;
using FloatVec = simd::FloatVec;
using IntTag = hn::RebindToSigned<FloatTag>;
using IntVec = hn::Vec<IntTag>;
using ByteTag = hn::Rebind<uint8_t, FloatTag>;

// One group of one panel, register r of its 16 outputs.
template <bool kFourBits, bool kAddend>
struct Group {
  FloatVec scale, addend;
  IntVec middle;
  const uint8_t* q;

  HWY_INLINE void read(const std::byte* bytes, const IntegerPanelShape& shape, size_t r) {
    if (shape.type.half_scales) {
      const auto* scales = reinterpret_cast<const uint16_t*>(bytes) + r * kLanes;
      scale = simd::float_of_half(hn::LoadU(simd::NarrowTag(), scales));
      if constexpr (kAddend) addend = simd::float_of_half(hn::LoadU(simd::NarrowTag(), scales + 16));
    } else {
      const auto* scales = reinterpret_cast<const float*>(bytes) + r * kLanes;
      scale = hn::LoadU(FloatTag(), scales);
      if constexpr (kAddend) addend = hn::LoadU(FloatTag(), scales + 16);
    }
    middle = hn::Set(IntTag(), shape.type.middle);
    q = reinterpret_cast<const uint8_t*>(bytes) + shape.scale_bytes() + r * kLanes;
  }

  HWY_INLINE FloatVec value(IntVec integers) const {
    const FloatVec product = hn::Mul(scale, hn::ConvertTo(FloatTag(), hn::Sub(integers, middle)));
    if constexpr (kAddend) return hn::Add(product, addend);
    return product;
  }

  HWY_INLINE IntVec integers(size_t at) const { return hn::PromoteTo(IntTag(), hn::LoadU(ByteTag(), q + at * 16)); }

  // The inputs k and k + 1 of the group.
  HWY_INLINE void pair(size_t k, FloatVec& first, FloatVec& second) const {
    if constexpr (kFourBits) {
      const IntVec both = integers(k / 2);
      first = value(hn::And(both, hn::Set(IntTag(), 15)));
      second = value(hn::ShiftRight<4>(both));
    } else {
      first = value(integers(k));
      second = value(integers(k + 1));
    }
  }
};

template <bool kFourBits, bool kAddend>
HWY_INLINE void unpack_panel(const std::byte* panel, const IntegerPanelShape& shape, float* floats) {
  const size_t groups = shape.depth / shape.type.group;
  for (size_t g = 0; g < groups; ++g, panel += shape.group_bytes(), floats += 16 * shape.type.group) {
    for (size_t r = 0; r < kRegisters; ++r) {
      Group<kFourBits, kAddend> group;
      group.read(panel, shape, r);
      for (size_t k = 0; k < shape.type.group; k += 2) {
        FloatVec first, second;
        group.pair(k, first, second);
        hn::StoreU(first, FloatTag(), floats + k * 16 + r * kLanes);
        hn::StoreU(second, FloatTag(), floats + (k + 1) * 16 + r * kLanes);
      }
    }
  }
}

// The products of one row with kPanels panels side by side: the sums of kernels::tile_product, the inputs in order.
template <bool kFourBits, bool kAddend, size_t kPanels>
HWY_INLINE void dot_panels(const float* input, const std::byte* panels, const IntegerPanelShape& shape, float* output) {
  constexpr size_t kSums = kPanels * kRegisters;
  FloatVec sums[kSums];
  for (FloatVec& sum : sums) sum = hn::Zero(FloatTag());
  const size_t groups = shape.depth / shape.type.group, group_bytes = shape.group_bytes();
  const size_t panel_bytes = shape.panel_bytes();
  for (size_t g = 0; g < groups; ++g, input += shape.type.group) {
    Group<kFourBits, kAddend> here[kSums];
    for (size_t i = 0; i < kSums; ++i) {
      here[i].read(panels + i / kRegisters * panel_bytes + g * group_bytes, shape, i % kRegisters);
    }
    for (size_t k = 0; k < shape.type.group; k += 2) {  // the sums wait for themselves, not for each other
      const FloatVec x = hn::Set(FloatTag(), input[k]), y = hn::Set(FloatTag(), input[k + 1]);
      for (size_t i = 0; i < kSums; ++i) {
        FloatVec first, second;
        here[i].pair(k, first, second);
        sums[i] = hn::MulAdd(y, second, hn::MulAdd(x, first, sums[i]));
      }
    }
  }
  for (size_t i = 0; i < kSums; ++i) hn::StoreU(sums[i], FloatTag(), output + i * kLanes);
}

// Packs the integers of a group of 16 outputs as IntegerPanelShape says. Shapes: q [16, kMaxBlockValues] from the
// group's first input on; group a multiple of 16.
HWY_INLINE void pack(const uint8_t* q, size_t group, bool four_bits, uint8_t* packed) {
#if HWY_TARGET == HWY_SCALAR
  for (size_t k = 0; k < group; ++k) {
    for (size_t lane = 0; lane < 16; ++lane) {
      const uint8_t one = q[lane * tensor::kMaxBlockValues + k];
      uint8_t& to = packed[(four_bits ? k / 2 : k) * 16 + lane];
      to = four_bits && k % 2 == 1 ? static_cast<uint8_t>(to | one << 4) : one;
    }
  }
#else
  const hn::FixedTag<uint8_t, 16> bytes;
  const hn::FixedTag<uint16_t, 8> halves;
  for (size_t first = 0; first < group; first += 16) {
    hn::Vec<decltype(bytes)> rows[16], turned[16];
    for (size_t i = 0; i < 16; ++i) rows[i] = hn::LoadU(bytes, q + i * tensor::kMaxBlockValues + first);
    for (size_t round = 0; round < 4; ++round) {  // each brings one bit of the row's number to the front
      for (size_t i = 0; i < 8; ++i) {
        turned[2 * i] = hn::InterleaveLower(bytes, rows[i], rows[i + 8]);
        turned[2 * i + 1] = hn::InterleaveUpper(bytes, rows[i], rows[i + 8]);
      }
      std::copy_n(turned, 16, rows);
    }
    if (!four_bits) {
      for (size_t i = 0; i < 16; ++i) hn::StoreU(rows[i], bytes, packed + (first + i) * 16);
      continue;
    }
    for (size_t i = 0; i < 16; i += 2) {
      const auto upper = hn::BitCast(bytes, hn::ShiftLeft<4>(hn::BitCast(halves, rows[i + 1])));
      hn::StoreU(hn::Or(rows[i], upper), bytes, packed + (first + i) / 2 * 16);
    }
  }
#endif
}

// Calls work(four_bits, has_addend) with the two as types.
template <class Work>
HWY_INLINE void with_kind(const tensor::SplitType& type, const Work& work) {
  using Yes = std::true_type;
  using No = std::false_type;
  if (type.four_bits) return type.has_addend ? work(Yes(), Yes()) : work(Yes(), No());
  return type.has_addend ? work(No(), Yes()) : work(No(), No());
}

// Shapes: panels count of shape, floats [count, depth, 16].
HWY_INLINE void unpack(const std::byte* panels, size_t count, const IntegerPanelShape& shape, float* floats) {
  with_kind(shape.type, [&](auto four_bits, auto has_addend) HWY_ATTR {
    for (size_t i = 0; i < count; ++i) {
      unpack_panel<four_bits(), has_addend()>(panels + i * shape.panel_bytes(), shape, floats + i * shape.depth * 16);
    }
  });
}

// Shapes: input [depth], output [count, 16].
HWY_INLINE void dot(const float* input, const std::byte* panels, size_t count, const IntegerPanelShape& shape,
                    float* output) {
  with_kind(shape.type, [&](auto four_bits, auto has_addend) HWY_ATTR {
    constexpr size_t kTogether = kRegisters == 1 ? 4 : kRegisters == 2 ? 2 : 1;  // as registers allow
    size_t i = 0;
    for (; i + kTogether <= count; i += kTogether) {
      dot_panels<four_bits(), has_addend(), kTogether>(input, panels + i * shape.panel_bytes(), shape, output + i * 16);
    }
    for (; i < count; ++i) {
      dot_panels<four_bits(), has_addend(), 1>(input, panels + i * shape.panel_bytes(), shape, output + i * 16);
    }
  });
}

}  // namespace integers
}  // namespace HWY_NAMESPACE
}  // namespace clearhead::linear
HWY_AFTER_NAMESPACE();

#endif
