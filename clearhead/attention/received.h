// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "clearhead/attention/config.h"
#include "clearhead/attention/exact.h"

namespace clearhead::attention {

// What each key is given by all queries of its sequence, head by head:
//
//   received_j = sum_i exp2(t_ij - r_i) / l_i
//
// A weight is known only when its row has ended, so this is a second sweep over all queries and keys beside the run:
// scores and exponentials once more, but no values. `clearhead bench
// attention` prints what it takes: from 0.7 of the time of the run to as long as the run. Queries are added in order,
// sixteen at a time in float, then in double; the result is rounded once. The same bits for any number of threads, any
// companions and every SIMD target with fused multiply-add.
//
// Of input, value is not read. Shapes: row_reference, row_sum [batch, num_heads, query_len], as exact_attention and
// fused_attention give them; received [batch, num_heads, key_len], 0 for keys that no query sees, NaN for those that a
// row sees which is NaN. Throws: Error (usage) if a span does not have the size of its shape.
void attention_received(const AttentionConfig& config, const AttentionInput& input,
                        std::span<const float> row_reference, std::span<const float> row_sum,
                        std::span<float> received);

}  // namespace clearhead::attention
