// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "clearhead/format/safetensors_header.h"

namespace clearhead::format {

// The inner step of parse_safetensors_header: reads the JSON text event by event, so that repeated keys and numbers
// that are no unsigned integers are seen and no tree is built. Entries come in the order of the text; their offsets and
// names are not compared with each other yet.
// Throws: Error (failure).
SafetensorsHeader read_safetensors_json(std::string_view text, std::string_view where);

}  // namespace clearhead::format
