// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace clearhead::measure {

// Whether this processor multiplies pairs of BF16 and adds them in F32 in one instruction (AVX512_BF16).
bool has_bf16_products();

// Runs steps rounds of 12 independent such instructions; returns the number of operations. Only where it has them.
double bf16_product_rounds(size_t steps, float* sink);

}  // namespace clearhead::measure
