// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/elements.h"

#include "clearhead/base/error.h"
#include "clearhead/kernels/widen.h"

namespace clearhead::attention {

using tensor::DType;

Elements::Elements(const tensor::TensorView& view) {
  switch (view.dtype()) {
    case DType::f32: *this = Elements(view.as<float>()); return;
    case DType::f16: *this = Elements(view.as<tensor::Half>()); return;
    case DType::bf16: *this = Elements(view.as<tensor::BFloat16>()); return;
    default:
      base::refuse("attention", "query, key and value of type F32, F16 or BF16",
                   std::string(tensor::name_of(view.dtype())));
  }
}

FloatRows Elements::rows(size_t first, size_t count, size_t width, size_t stride, FloatRoom& room) const {
  if (dtype_ == DType::f32) return {data() + first, stride};
  static_assert(sizeof(tensor::Half) == sizeof(uint16_t) && sizeof(tensor::BFloat16) == sizeof(uint16_t));
  const auto widen = dtype_ == DType::f16 ? kernels::widen_halves : kernels::widen_bfloat16;
  const auto* bits = static_cast<const uint16_t*>(data_) + first;
  float* floats = room.at_least(count * width);
  for (size_t row = 0; row < count; ++row) widen({bits + row * stride, width}, floats + row * width);
  return {floats, width};
}

}  // namespace clearhead::attention
