// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "clearhead/measure/benchmark.h"
#include "clearhead/measure/machine.h"

namespace clearhead::apps {

// {"machine", "peaks", "rows"}
std::string bench_json(const measure::Machine& machine, const measure::Report& report);

// The same as tables, a line for each shape.
std::string bench_page(const measure::Machine& machine, const measure::Report& report);

}  // namespace clearhead::apps
