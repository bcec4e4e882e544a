// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/mask.h"

#include <fmt/format.h>

#include <cstring>

#include "clearhead/base/error.h"

namespace clearhead::attention {
namespace {

using tensor::DType;

// A bias of this or less forbids the key: finfo.min of float and bfloat16, and -infinity, are meant so, and the sum of
// two of them still is.
constexpr float kForbidden = -1e30f;

// Element at an index of elements that need not be aligned.
template <class T>
T element(const std::byte* bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

double number(float value) { return value; }
double number(double value) { return value; }
double number(tensor::Half value) { return tensor::to_float(value); }
double number(tensor::BFloat16 value) { return tensor::to_float(value); }

template <class T, class Real>
void read_biases(const std::byte* bytes, size_t start, size_t stride, std::span<uint8_t> visible,
                 std::span<Real> bias) {
  for (size_t j = 0; j < visible.size(); ++j) {
    const double value = number(element<T>(bytes, start + j * stride));
    visible[j] = static_cast<float>(value) <= kForbidden ? 0 : 1;
    bias[j] = visible[j] ? static_cast<Real>(value) : Real{0};
  }
}

}  // namespace

Mask::Mask(const tensor::TensorView& values, std::array<size_t, 4> full) : present_(true), values_(values) {
  boolean_ = values.dtype() == DType::bool_ || values.dtype() == DType::u8;
  if (!boolean_ && !tensor::is_floating(values.dtype())) {
    base::refuse("attention mask", "BOOL, U8 or a floating type", std::string(tensor::name_of(values.dtype())));
  }
  const tensor::Shape whole{full[0], full[1], full[2], full[3]};
  bool fits = values.shape().rank() == full.size();
  for (size_t axis = 0; fits && axis < full.size(); ++axis) {
    fits = values.shape()[axis] == full[axis] || values.shape()[axis] == 1;
  }
  if (!fits) {
    base::refuse("attention mask",
                 fmt::format("[batch, heads, query, key] = {} with each axis of that size or 1", whole.text()),
                 values.shape().text());
  }
  size_t stride = 1;
  for (size_t axis = full.size(); axis-- > 0;) {
    strides_[axis] = values.shape()[axis] == 1 ? 0 : stride;
    stride *= values.shape()[axis];
  }
}

template <class Real>
void Mask::read(std::array<size_t, 3> batch_head_query, size_t first, std::span<uint8_t> visible,
                std::span<Real> bias) const {
  size_t start = first * strides_[3];
  for (size_t axis = 0; axis < batch_head_query.size(); ++axis) start += batch_head_query[axis] * strides_[axis];
  const std::byte* bytes = values_.bytes().data();
  if (boolean_) {
    for (size_t j = 0; j < visible.size(); ++j) {
      visible[j] = bytes[start + j * strides_[3]] != std::byte{0} ? 1 : 0;
      bias[j] = Real{0};
    }
    return;
  }
  switch (values_.dtype()) {
    case DType::f16: return read_biases<tensor::Half>(bytes, start, strides_[3], visible, bias);
    case DType::bf16: return read_biases<tensor::BFloat16>(bytes, start, strides_[3], visible, bias);
    case DType::f64: return read_biases<double>(bytes, start, strides_[3], visible, bias);
    default: return read_biases<float>(bytes, start, strides_[3], visible, bias);
  }
}

void Mask::read_row(std::array<size_t, 3> batch_head_query, size_t first, std::span<uint8_t> visible,
                    std::span<float> bias) const {
  read(batch_head_query, first, visible, bias);
}

void Mask::read_row(std::array<size_t, 3> batch_head_query, size_t first, std::span<uint8_t> visible,
                    std::span<double> bias) const {
  read(batch_head_query, first, visible, bias);
}

}  // namespace clearhead::attention
