// SPDX-License-Identifier: Apache-2.0
#include "clearhead/tensor/tensor.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "clearhead/base/checked.h"
#include "clearhead/base/error.h"

namespace clearhead::tensor {
namespace {

size_t checked_bytes(DType dtype, const Shape& shape) {
  const auto count = shape.checked_elements();
  const auto bytes = count ? base::checked_multiply(*count, size_of(dtype)) : std::nullopt;
  if (!bytes) base::fail("tensor", "a size that fits 64 bits", shape.text());
  return *bytes;
}

// Calls visit with a value of the C++ type that stands for dtype.
template <class Visit>
void with_type(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::f32: return visit(float{});
    case DType::f16: return visit(Half{});
    case DType::bf16: return visit(BFloat16{});
    case DType::f64: return visit(double{});
    case DType::i64: return visit(int64_t{});
    case DType::i32: return visit(int32_t{});
    case DType::u8: return visit(uint8_t{});
    case DType::bool_: return visit(bool{});
  }
}

// value as a float, rounded to odd: cut off towards zero, and the last bit set if anything was lost. Rounding the
// result once more to a format of at most 22 bits gives what rounding value itself would give. Source: Boldo,
// Melquiond: When double rounding is odd (2005).
template <class From>
float round_to_odd(From value) {
  using Wide = std::conditional_t<std::is_same_v<From, double>, double, long double>;  // holds every int64 exactly
  const float nearest = static_cast<float>(value);
  const Wide exact = static_cast<Wide>(value), reached = static_cast<Wide>(nearest);
  if (reached == exact || std::isnan(exact)) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::abs(reached) > std::abs(exact)) --bits;
  return std::bit_cast<float>(bits | 1);
}

template <class To, class From>
To convert(From value) {
  constexpr bool kFromSmall = std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>;
  if constexpr (std::is_same_v<From, To>)
    return value;
  else if constexpr (kFromSmall)
    return convert<To>(to_float(value));
  else if constexpr (std::is_same_v<To, Half>)
    return to_half(round_to_odd(value));
  else if constexpr (std::is_same_v<To, BFloat16>)
    return to_bfloat16(round_to_odd(value));
  else
    return static_cast<To>(value);
}

template <class From>
From load(const std::byte* bytes) {
  if constexpr (std::is_same_v<From, bool>) {
    return *bytes != std::byte{0};  // any other bit pattern than 0 and 1 in a bool is undefined behaviour
  } else {
    From value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
}

// Converts every element of view and stores it at output.
template <class To>
void convert_all(const TensorView& view, To* output) {
  with_type(view.dtype(), [&](auto example) {
    using From = decltype(example);
    const std::byte* bytes = view.bytes().data();
    for (size_t i = 0, count = view.elements(); i < count; ++i)
      output[i] = convert<To>(load<From>(bytes + i * sizeof(From)));
  });
}

bool is_lossless_or_floating(DType from, DType to) {
  if (from == to || is_floating(to)) return true;
  if (is_floating(from) || to == DType::bool_) return false;
  return size_of(from) <= size_of(to) && to != DType::u8;
}

}  // namespace

TensorView::TensorView(DType dtype, Shape shape, std::span<const std::byte> bytes)
    : dtype_(dtype), shape_(std::move(shape)), bytes_(bytes) {
  const size_t expected = checked_bytes(dtype_, shape_);
  if (expected != bytes.size()) {
    base::fail("tensor view", fmt::format("{} bytes for {} {}", expected, name_of(dtype_), shape_.text()),
               fmt::format("{} bytes", bytes.size()));
  }
}

void TensorView::check_access(DType wanted, size_t alignment) const {
  if (wanted != dtype_) base::fail("tensor view", std::string(name_of(wanted)), std::string(name_of(dtype_)));
  if (reinterpret_cast<uintptr_t>(bytes_.data()) % alignment != 0) {
    base::fail("tensor view", fmt::format("elements aligned to {} bytes", alignment), "unaligned bytes",
               "copy them first");
  }
}

Tensor::Tensor(DType dtype, Shape shape)
    : dtype_(dtype), shape_(std::move(shape)), buffer_(checked_bytes(dtype_, shape_)) {}

void Tensor::check_access(DType wanted) const {
  if (wanted != dtype_) base::fail("tensor", std::string(name_of(wanted)), std::string(name_of(dtype_)));
}

Tensor Tensor::reshaped(Shape shape) && {
  if (shape.checked_elements() != elements()) {
    base::fail("tensor", fmt::format("a shape of {} elements", elements()), shape.text());
  }
  shape_ = std::move(shape);
  return std::move(*this);
}

Tensor clone(const TensorView& view) {
  Tensor copy(view.dtype(), view.shape());
  if (!view.bytes().empty()) std::memcpy(copy.bytes().data(), view.bytes().data(), view.bytes().size());
  return copy;
}

Tensor to_dtype(const TensorView& view, DType dtype) {
  if (!is_lossless_or_floating(view.dtype(), dtype)) {
    base::fail("tensor", fmt::format("a type that can become {}", name_of(dtype)), std::string(name_of(view.dtype())));
  }
  Tensor copy(dtype, view.shape());
  with_type(dtype, [&](auto example) { convert_all(view, copy.as<decltype(example)>().data()); });
  return copy;
}

void copy_to_float(const TensorView& view, std::span<float> output) {
  if (output.size() != view.elements()) {
    base::fail("tensor", fmt::format("room for {} elements", view.elements()), fmt::format("{}", output.size()));
  }
  convert_all(view, output.data());
}

}  // namespace clearhead::tensor
