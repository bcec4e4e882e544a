// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace clearhead::attention {

// Which keys a query may see by position. A query's position among the keys is its index plus the number of keys before
// the first query; top_left takes that number as 0.
//   none      all of them
//   top_left  key j for query i if j <= i
//   offset    key j for query i if j <= i + key_offset; bottom-right alignment is offset with bottom_right(...)
enum class Causal { none, top_left, offset };

// The key_offset that lets the last query see the last key; negative if there are more queries than keys, and then the
// first of them see nothing.
constexpr int64_t bottom_right(size_t query_len, size_t key_len) {
  return static_cast<int64_t>(key_len) - static_cast<int64_t>(query_len);
}

// What the products of a run are computed in.
//   single    float
//   bfloat16  query, key, value and the exponentials of the scores rounded to bfloat16, sums of products in float;
//   twice
//             as fast where the machine has AVX512_BF16, the same bits but slow elsewhere. The sums of the exponentials
//             and the weights that are shown stay float, from the same exponentials.
enum class Precision { single, bfloat16 };

// How heads attend: behaviours, never models.
//
//   s_ij = cap tanh(scale q_i . k_j / cap) + bias_ij + slope_h (j - p_i)     p_i = i + key_offset
//
// over the keys with p_i - left_window <= j <= p_i + right_window that the causal rule, the mask and the length of the
// sequence leave; without a soft cap the score is scale q_i . k_j itself.
struct AttentionConfig {
  size_t num_heads = 1;
  size_t num_kv_heads = 1;  // divides num_heads; query head h reads kv head h / (num_heads / num_kv_heads)
  size_t head_dim = 1;      // of query and key
  size_t value_dim = 1;     // of value and head output
  std::optional<float> scale = std::nullopt;  // absent: 1 / sqrt(head_dim)
  Causal causal = Causal::none;
  int64_t key_offset = 0;  // number of keys before the first query: for Causal::offset, windows and alibi_slopes
  // Keys beside the one at the query's own position that may be seen on that side; absent: all, 0: none.
  std::optional<size_t> left_window = std::nullopt, right_window = std::nullopt;
  std::optional<float> soft_cap = std::nullopt;  // greater than 0, in natural units
  std::vector<float> alibi_slopes = {};          // [num_heads], or empty for none
  std::vector<float> sinks = {};                 // [num_heads] natural logits of a learned sink, or empty for none
  Precision precision = Precision::single;

  float effective_scale() const;
  size_t kv_head_of(size_t head) const { return head / (num_heads / num_kv_heads); }

  // Throws: Error (usage) unless all counts are positive, num_kv_heads divides num_heads, and scale, soft cap, slopes
  // and sinks are numbers that can be computed with.
  void check() const;

  // As the metadata of a trace has it: one JSON object, keys as the fields here; what is absent is null or [].
  std::string json() const;
};

}  // namespace clearhead::attention
