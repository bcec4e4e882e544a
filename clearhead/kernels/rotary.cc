// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/rotary.h"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/kernels/rotary.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace clearhead::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The pairs i in [begin, count - count % lanes); returns where it ended.
template <class Tag>
size_t rotate_part(Tag tag, size_t begin, float* head, std::span<const float> cosines, std::span<const float> sines,
                   bool interleaved) {
  const size_t count = cosines.size(), lanes = hn::Lanes(tag);
  size_t i = begin;
  for (; i + lanes <= count; i += lanes) {
    auto a = hn::LoadU(tag, interleaved ? head + 2 * i : head + i), b = a;
    if (interleaved) {
      hn::LoadInterleaved2(tag, head + 2 * i, a, b);
    } else {
      b = hn::LoadU(tag, head + count + i);
    }
    const auto cosine = hn::LoadU(tag, &cosines[i]), sine = hn::LoadU(tag, &sines[i]);
    const auto first = hn::MulSub(a, cosine, hn::Mul(b, sine)), second = hn::MulAdd(b, cosine, hn::Mul(a, sine));
    if (interleaved) {
      hn::StoreInterleaved2(first, second, tag, head + 2 * i);
    } else {
      hn::StoreU(first, tag, head + i);
      hn::StoreU(second, tag, head + count + i);
    }
  }
  return i;
}

void rotate_head(float* head, std::span<const float> cosines, std::span<const float> sines, bool interleaved) {
  const size_t done = rotate_part(hn::ScalableTag<float>(), 0, head, cosines, sines, interleaved);
  rotate_part(hn::CappedTag<float, 1>(), done, head, cosines, sines, interleaved);
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::kernels {

HWY_EXPORT(rotate_head);

void rotate(std::span<float> head, std::span<const float> cosines, std::span<const float> sines, RotaryLayout layout) {
  HWY_DYNAMIC_DISPATCH(rotate_head)(head.data(), cosines, sines, layout == RotaryLayout::interleaved);
}

}  // namespace clearhead::kernels
#endif
