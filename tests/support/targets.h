// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "clearhead/base/target.h"

namespace clearhead::tests {

// Runs body(name) once for every SIMD target that this machine has, each forced in turn.
template <class Body>
void for_each_target(const Body& body) {
  for (const std::string& name : base::simd_targets()) {
    SCOPED_TRACE(name);
    base::force_simd_target(name);
    body(name);
    base::force_simd_target("");
  }
}

// Whether a target multiplies and adds with one rounding; those have the same bits.
inline bool has_fused_multiply_add(const std::string& name) {
  return name == "AVX2" || name.starts_with("AVX3") || name.starts_with("NEON");
}

}  // namespace clearhead::tests
