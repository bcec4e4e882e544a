// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace clearhead::base {

// Name of the SIMD target that kernels run on here, as Highway names it ("AVX2", "AVX3", ...).
std::string simd_target();

// Names of all targets that were compiled in and that this machine has, best first, whatever is forced.
std::vector<std::string> simd_targets();

// Restricts every kernel of this process to one target; an empty name lifts the restriction.
// Throws: Error (usage) if this machine does not have the target; what was in force before stays so.
void force_simd_target(std::string_view name);

}  // namespace clearhead::base
