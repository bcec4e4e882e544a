// SPDX-License-Identifier: Apache-2.0
#include "clearhead/tensor/dtype.h"

#include <array>
#include <cmath>

namespace clearhead::tensor {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  size_t size;
};

constexpr std::array<Row, 8> kTable{{{DType::f32, "F32", 4},
                                     {DType::f16, "F16", 2},
                                     {DType::bf16, "BF16", 2},
                                     {DType::f64, "F64", 8},
                                     {DType::i64, "I64", 8},
                                     {DType::i32, "I32", 4},
                                     {DType::u8, "U8", 1},
                                     {DType::bool_, "BOOL", 1}}};

const Row& row_of(DType dtype) { return kTable[static_cast<size_t>(dtype)]; }

}  // namespace

size_t size_of(DType dtype) { return row_of(dtype).size; }

std::string_view name_of(DType dtype) { return row_of(dtype).name; }

std::optional<DType> dtype_of(std::string_view name) {
  for (const Row& row : kTable) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f64;
}

float to_float(Half value) {
  const uint32_t sign = uint32_t(value.bits & 0x8000) << 16;
  const uint32_t exponent = (value.bits >> 10) & 0x1f, fraction = value.bits & 0x3ff;
  if (exponent == 0) {  // zero or subnormal: fraction times 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

float to_float(BFloat16 value) { return std::bit_cast<float>(uint32_t(value.bits) << 16); }

Half to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return {static_cast<uint16_t>(sign | 0x7e00 | ((bits >> 13) & 0x3ff))};
  if (magnitude >= 0x477ff000) return {static_cast<uint16_t>(sign | 0x7c00)};  // 65520 and above round to infinity
  if (magnitude < 0x38800000) {                                                // below 2^-14: subnormal, steps of 2^-24
    const float steps = std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p24f);
    return {static_cast<uint16_t>(sign | static_cast<uint16_t>(steps))};
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return {static_cast<uint16_t>(sign | ((rounded - (112u << 23)) >> 13))};
}

BFloat16 to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

}  // namespace clearhead::tensor
