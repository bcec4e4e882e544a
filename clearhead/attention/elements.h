// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "clearhead/attention/float_room.h"
#include "clearhead/tensor/dtype.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::attention {

// Rows of floats, stride floats from row to row.
struct FloatRows {
  const float* data;
  size_t stride;
};

// Numbers that attention reads, somebody else's: F32, or F16 and BF16, which become floats, exactly, where they are
// packed; no copy of all of them is made.
class Elements {
 public:
  Elements() = default;
  template <std::convertible_to<std::span<const float>> Floats>
  Elements(const Floats& floats) : Elements(tensor::DType::f32, std::span<const float>(floats)) {}
  Elements(std::span<const tensor::Half> halves) : Elements(tensor::DType::f16, halves) {}
  Elements(std::span<const tensor::BFloat16> numbers) : Elements(tensor::DType::bf16, numbers) {}
  // Throws: Error if the tensor is of another type or its bytes are not aligned for it.
  Elements(const tensor::TensorView& view);

  size_t size() const { return size_; }
  tensor::DType dtype() const { return dtype_; }
  // In place; nullptr unless F32.
  const float* data() const { return dtype_ == tensor::DType::f32 ? static_cast<const float*>(data_) : nullptr; }

  // count rows of width elements, the first at element first and stride elements from row to row: in place if F32, else
  // turned to float in the room.
  FloatRows rows(size_t first, size_t count, size_t width, size_t stride, FloatRoom& room) const;

 private:
  template <class Element>
  Elements(tensor::DType dtype, std::span<const Element> elements)
      : dtype_(dtype), data_(elements.data()), size_(elements.size()) {}

  tensor::DType dtype_ = tensor::DType::f32;
  const void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace clearhead::attention
