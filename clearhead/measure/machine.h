// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace clearhead::measure {

// What a number was measured on.
struct Machine {
  std::string cpu;       // as the system names it
  std::string features;  // class of its vector unit: "AVX2", "AVX-512", "AVX-512 with BF16", or another target's name
  size_t cores;          // that this process may use
  size_t memory_bytes;   // 0: unknown
  std::string target;    // SIMD target that the kernels run on
  std::string compiler, version;
};

Machine describe_machine();

}  // namespace clearhead::measure
