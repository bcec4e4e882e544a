// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clearhead/views/terminal.h"

namespace clearhead::views {

// Cuts a text into lines of at most columns: at spaces, and beside wide characters (Chinese needs no spaces). A word
// that is longer than a line is cut. The text becomes printable.
std::vector<std::string> wrap(std::string_view text, size_t columns, const Style& style);

}  // namespace clearhead::views
