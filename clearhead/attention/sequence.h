// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "clearhead/attention/config.h"
#include "clearhead/kernels/attention_tile.h"

namespace clearhead::attention {

// One sequence among the rows of a batch. A list of them says what is not padding (valid lengths: key_len; padding on
// the left: key_begin), and packs sequences of unequal lengths behind each other without any (batch 1, one after
// another). Queries of one sequence see keys of that sequence only.
struct Sequence {
  size_t batch = 0;                       // the row of the batch axis in which it stands
  size_t query_begin = 0, query_len = 0;  // its queries [query_begin, query_begin + query_len) there
  size_t key_begin = 0, key_len = 0;      // its keys likewise; positions and key tiles are counted from the first
  int64_t key_offset = 0;                 // takes the place of AttentionConfig::key_offset
  size_t evicted = 0;                     // of its keys, so many first ones are not there any more and cannot be seen
};

// The sizes that sequences stand in.
struct BatchSizes {
  size_t batch, query_len, key_len;
};

// The sequences of a batch: those that were given, or, if none were, one for every row of the batch, as long as the
// axes are and with the offset of the config. Queries in none of them see nothing.
// Throws: Error (usage) for a sequence that is not inside the axes, or two that share a query.
std::vector<Sequence> sequences_of(const AttentionConfig& config, const BatchSizes& sizes,
                                   std::span<const Sequence> given);
// The same into a list that keeps its room.
void list_sequences(const AttentionConfig& config, const BatchSizes& sizes, std::span<const Sequence> given,
                    std::vector<Sequence>& sequences);

// The keys [begin, end) of a sequence that its query may see by position: causal rule, windows and length together.
using kernels::KeyRange;
KeyRange visible_keys(const AttentionConfig& config, const Sequence& sequence, size_t query);

// The position of a query of a sequence among its keys; before the first or behind the last for some offsets.
int64_t position_of(const AttentionConfig& config, const Sequence& sequence, size_t query);

}  // namespace clearhead::attention
