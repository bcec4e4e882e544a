// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "clearhead/capture/trace.h"

namespace clearhead::capture {

// What stands in a trace file's __metadata__: clearhead.version, model, text, attention; tokens, layers and heads as
// JSON lists; num_layers, num_heads and num_kv_heads as decimal numbers. All texts must be valid UTF-8.
std::map<std::string, std::string> metadata_of(const TraceInfo& trace_info);

// The way back. Keys that are not ours are left to whoever wrote them.
// Throws: Error, beginning with where, naming the key that is missing or does not hold what it should.
TraceInfo info_from_metadata(const std::map<std::string, std::string>& metadata, std::string_view where);

// Whether text is one JSON object.
bool is_json_object(std::string_view text);

}  // namespace clearhead::capture
