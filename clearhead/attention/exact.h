// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "clearhead/attention/config.h"
#include "clearhead/attention/elements.h"
#include "clearhead/attention/mask.h"
#include "clearhead/attention/sequence.h"
#include "clearhead/capture/observer.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::attention {

class KeyValueCache;

// What attention reads, row-major.
struct AttentionInput {
  size_t batch = 1, query_len = 0, key_len = 0;
  Elements query;                            // [batch, query_len, num_heads, head_dim], after rotary positions
  Elements key;                              // [batch, key_len, num_kv_heads, head_dim], after rotary positions
  Elements value;                            // [batch, key_len, num_kv_heads, value_dim]
  Mask mask;                                 // over the axes query_len and key_len, whatever sequences stand in them
  std::span<const Sequence> sequences = {};  // none: every row of the batch is one, all of it
  // [batch], or none: where keys and values stand packed. Then key and value are empty, every sequence has all keys of
  // its cache, and keys that were evicted are not seen.
  std::span<const KeyValueCache* const> caches = {};
};

// The sequences of an input whose sizes fit each other and the config.
// Throws: Error (usage) otherwise.
std::vector<Sequence> checked_sequences(const AttentionConfig& config, const AttentionInput& input);
// The same into a list that keeps its room.
void list_checked_sequences(const AttentionConfig& config, const AttentionInput& input,
                            std::vector<Sequence>& sequences);

struct AttentionOutput {
  tensor::Tensor head_output;    // [batch, query_len, num_heads, value_dim]
  tensor::Tensor row_reference;  // [batch, num_heads, query_len]; -infinity where nothing may be seen
  tensor::Tensor row_sum;        // [batch, num_heads, query_len]; 0 where nothing may be seen
};

// Scaled dot-product attention as the equation is written, scores materialised:
//
//   t_ij = kernel score (score_recipe.h)  r_i = ceil(max_j t_ij)      l_i = sum_j exp2(t_ij - r_i)
//   p_ij = exp2(t_ij - r_i) / l_i         o_i = (sum_j exp2(t_ij - r_i) v_j) (1 / l_i)
//
// over constant key tiles of 256, each on its own, merged from left to right, a learned sink last: the same bits for
// any number of threads and any batch companions. Keys that may not be seen are skipped; tiles that no row sees by
// position are not computed unless somebody watches. A row that sees no key has output 0, reference -infinity and sum
// 0. Shows raw_scores, scores, kernel_scores, row_reference, row_sum and weights to the observer (nullptr: nobody
// watches) if wanted; where no sequence stands, raw scores and weights are 0 and scores -infinity. Throws: Error
// (usage) if a span does not have the size of its shape, or a sequence does not fit. Source: Vaswani et al. 2017,
// Attention Is All You Need, equation 1.
AttentionOutput exact_attention(const AttentionConfig& config, const AttentionInput& input,
                                capture::Observer* observer = nullptr, size_t layer = 0);

}  // namespace clearhead::attention
