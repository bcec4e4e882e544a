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

  HWY_INLINE Group(const std::byte* bytes, const IntegerPanelShape& shape, size_t r) {
    const auto* scales = reinterpret_cast<const float*>(bytes) + r * kLanes;
    scale = hn::LoadU(FloatTag(), scales);
    if constexpr (kAddend) addend = hn::LoadU(FloatTag(), scales + 16);
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
      const Group<kFourBits, kAddend> group(panel, shape, r);
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
  FloatVec sums[kPanels * kRegisters];
  for (FloatVec& sum : sums) sum = hn::Zero(FloatTag());
  const size_t groups = shape.depth / shape.type.group, group_bytes = shape.group_bytes();
  const size_t panel_bytes = shape.panel_bytes();
  for (size_t g = 0; g < groups; ++g, input += shape.type.group) {
    for (size_t p = 0; p < kPanels; ++p) {
      for (size_t r = 0; r < kRegisters; ++r) {
        const Group<kFourBits, kAddend> group(panels + p * panel_bytes + g * group_bytes, shape, r);
        FloatVec sum = sums[p * kRegisters + r];
        for (size_t k = 0; k < shape.type.group; k += 2) {
          FloatVec first, second;
          group.pair(k, first, second);
          sum = hn::MulAdd(hn::Set(FloatTag(), input[k]), first, sum);
          sum = hn::MulAdd(hn::Set(FloatTag(), input[k + 1]), second, sum);
        }
        sums[p * kRegisters + r] = sum;
      }
    }
  }
  for (size_t i = 0; i < kPanels * kRegisters; ++i) hn::StoreU(sums[i], FloatTag(), output + i * kLanes);
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
    size_t i = 0;
    for (; i + 2 <= count; i += 2) {
      dot_panels<four_bits(), has_addend(), 2>(input, panels + i * shape.panel_bytes(), shape, output + i * 16);
    }
    if (i < count) {
      dot_panels<four_bits(), has_addend(), 1>(input, panels + i * shape.panel_bytes(), shape, output + i * 16);
    }
  });
}

}  // namespace integers
}  // namespace HWY_NAMESPACE
}  // namespace clearhead::linear
HWY_AFTER_NAMESPACE();

#endif
