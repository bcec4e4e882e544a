// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace clearhead::bench {

// The most floating-point operations per second that this machine gives on its present SIMD target: fused multiply-adds
// (multiplications and additions on a target without) between registers, 2 operations a lane. Best of several runs of a
// few milliseconds. Units: GFLOP/s, all threads together.
double peak_gflops(size_t threads);

}  // namespace clearhead::bench
