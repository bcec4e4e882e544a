// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "clearhead/views/attention_map.h"
#include "clearhead/views/labels.h"

namespace clearhead::views {

// draw_map of the one row map.from: the sentence coloured by weight and what the token looks at.
std::string draw_map_row(const AttentionMap& map, const MapOptions& options, const Labels& labels);

}  // namespace clearhead::views
