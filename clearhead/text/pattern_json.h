// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "clearhead/text/json_fields.h"
#include "clearhead/text/pattern.h"

namespace clearhead::text {

// {"String": "..."} or {"Regex": "..."}. Throws: Error for anything else, and for a string of nothing.
std::unique_ptr<Pattern> read_pattern(JsonFields::Element value, const std::string& where);

}  // namespace clearhead::text
