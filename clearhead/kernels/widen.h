// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace clearhead::kernels {

// Half precision and bfloat16, as their bits, to float: exact, subnormals and infinities included; NaN stays NaN.
// Shapes: output [bits.size()].
void widen_halves(std::span<const uint16_t> bits, float* output);
void widen_bfloat16(std::span<const uint16_t> bits, float* output);

}  // namespace clearhead::kernels
