// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "clearhead/base/memory.h"
#include "clearhead/tensor/dtype.h"
#include "clearhead/tensor/shape.h"

namespace clearhead::tensor {

// Somebody else's elements, row-major without gaps. Valid as long as the owner lives. The bytes need not be aligned:
// files do not promise it.
class TensorView {
 public:
  TensorView() = default;
  // Throws: Error unless bytes has exactly shape.elements() * size_of(dtype).
  TensorView(DType dtype, Shape shape, std::span<const std::byte> bytes);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  size_t elements() const { return bytes_.size() / size_of(dtype_); }

  // The elements in place. Throws: Error if T is not the dtype or the bytes are not aligned for T
  // (to_dtype makes an aligned copy).
  template <class T>
  std::span<const T> as() const {
    check_access(dtype_for<T>(), alignof(T));
    return {reinterpret_cast<const T*>(bytes_.data()), elements()};
  }

 private:
  void check_access(DType wanted, size_t alignment) const;

  DType dtype_ = DType::f32;
  Shape shape_{0};
  std::span<const std::byte> bytes_;
};

// Owned elements, row-major, aligned to 64 bytes, zero at first. Movable, copied only by clone.
class Tensor {
 public:
  Tensor() = default;
  // Throws: Error if the size does not fit.
  Tensor(DType dtype, Shape shape);
  // An F32 tensor.
  explicit Tensor(Shape shape) : Tensor(DType::f32, std::move(shape)) {}

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  size_t elements() const { return buffer_.size() / size_of(dtype_); }
  std::span<std::byte> bytes() { return buffer_.bytes(); }
  std::span<const std::byte> bytes() const { return buffer_.bytes(); }

  template <class T>
  std::span<T> as() {
    check_access(dtype_for<T>());
    return {reinterpret_cast<T*>(buffer_.data()), elements()};
  }
  template <class T>
  std::span<const T> as() const {
    check_access(dtype_for<T>());
    return {reinterpret_cast<const T*>(buffer_.data()), elements()};
  }

  TensorView view() const { return {dtype_, shape_, buffer_.bytes()}; }
  operator TensorView() const { return view(); }

  // The same elements under another shape. Throws: Error if the number of elements differs.
  Tensor reshaped(Shape shape) &&;

 private:
  void check_access(DType wanted) const;

  DType dtype_ = DType::f32;
  Shape shape_{0};
  base::AlignedBuffer buffer_;
};

// An owned copy.
Tensor clone(const TensorView& view);

// An owned copy in another type. To floating types: rounded once, to nearest even. Integers and BOOL to wider integers:
// exact. Anything else throws Error.
Tensor to_dtype(const TensorView& view, DType dtype);

// As to_dtype(view, DType::f32), into existing memory. Shapes: output [view.elements()].
void copy_to_float(const TensorView& view, std::span<float> output);

}  // namespace clearhead::tensor
