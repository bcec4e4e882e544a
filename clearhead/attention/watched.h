// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/attention/config.h"
#include "clearhead/attention/exact.h"
#include "clearhead/attention/fused.h"
#include "clearhead/capture/watch.h"

namespace clearhead::attention {

// What a layer runs: one fused pass, whoever watches. Shows what exact_attention shows, bit for bit: row_reference and
// row_sum as they are, stages of query_len x key_len by a source that rebuilds what is looked at.
void watched_attention(const AttentionConfig& config, const AttentionInput& input, const AttentionSpans& output,
                       FusedAttention& fused, const capture::Watch& watch);

}  // namespace clearhead::attention
