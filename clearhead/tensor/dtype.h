// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace clearhead::tensor {

// Types of an element, with the names that safetensors gives them.
enum class DType { f32, f16, bf16, f64, i64, i32, u8, bool_ };

// Bytes of one element.
size_t size_of(DType dtype);

// "F32", "F16", "BF16", "F64", "I64", "I32", "U8", "BOOL"; and back, nothing for any other name.
std::string_view name_of(DType dtype);
std::optional<DType> dtype_of(std::string_view name);

// True for F32, F16, BF16 and F64.
bool is_floating(DType dtype);

// IEEE 754 half precision, as its bits.
struct Half {
  uint16_t bits;
};

// bfloat16, the upper half of a float, as its bits.
struct BFloat16 {
  uint16_t bits;
};

// Exact in the direction to float (subnormals kept); rounded to nearest even in the other, NaN stays a quiet NaN and
// what is too large becomes infinity.
float to_float(Half value);
float to_float(BFloat16 value);
Half to_half(float value);
BFloat16 to_bfloat16(float value);

// The DType of a C++ type: float, Half, BFloat16, double, int64_t, int32_t, uint8_t or bool.
template <class T>
constexpr DType dtype_for() {
  if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, Half>)
    return DType::f16;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return DType::bf16;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::i64;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::i32;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::u8;
  else {
    static_assert(std::is_same_v<T, bool>, "no DType for this type");
    return DType::bool_;
  }
}

}  // namespace clearhead::tensor
