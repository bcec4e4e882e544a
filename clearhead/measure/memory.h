// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

namespace clearhead::measure {

// Bytes of memory in use at the height of work, beyond what was in use before. Nothing if the system does not tell.
std::optional<size_t> growth_during(const std::function<void()>& work);

}  // namespace clearhead::measure
