// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/capture/trace.h"
#include "clearhead/views/attention_map.h"
#include "clearhead/views/head_summary.h"

namespace clearhead::views {

// Each function returns one JSON document: UTF-8, no NaN or infinity (null instead), numbers that read back as the same
// float. Schemas: docs/schema/.

// {"model", "text", "tokens"}
std::string tokenize_json(const std::string& model, const std::string& text,
                          const std::vector<capture::TraceToken>& tokens);

// {"model", "text", "tokens", "layer", "head", "weights", "row_reference", "row_sum", "lse"}
std::string attend_head_json(const capture::Trace& trace, size_t layer, size_t head, const MapOptions& options);
// The same in parts, a row of weights at a time: nothing of seq x seq is held.
void write_attend_head_json(const capture::Trace& trace, size_t layer, size_t head, const MapOptions& options,
                            const std::function<void(std::string_view)>& write);

// {"model", "text", "tokens", "num_layers", "num_heads", "heads": [...], "rows" with options.from}
std::string attend_json(const capture::Trace& trace, const std::vector<HeadSummary>& heads, const MapOptions& options);

}  // namespace clearhead::views
