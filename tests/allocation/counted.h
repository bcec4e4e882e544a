// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace clearhead::tests {

// Allocations of the program so far: operator new of all kinds, and what aligned buffers take from the system.
size_t allocations();

}  // namespace clearhead::tests
