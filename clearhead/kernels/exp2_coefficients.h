// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace clearhead::kernels {

// Of the polynomial for 2^f, |f| <= 1/2: degree 5 with the constant exactly 1. Everything that raises powers of two
// takes these and the same steps.
inline constexpr float kExp2Coefficients[] = {1.0f,           6.93146967e-1f, 2.40221197e-1f,
                                              5.55071327e-2f, 9.67554133e-3f, 1.3276472e-3f};

}  // namespace clearhead::kernels
