// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace clearhead::attention {

// Which keys a query may see by position.
//   none      all of them
//   top_left  key j for query i if j <= i
//   offset    key j for query i if j <= i + key_offset (keys before the first query are all seen)
enum class Causal { none, top_left, offset };

// How heads attend: behaviours, never models.
struct AttentionConfig {
  size_t num_heads = 1;
  size_t num_kv_heads = 1;  // divides num_heads; query head h reads kv head h / (num_heads / num_kv_heads)
  size_t head_dim = 1;      // of query and key
  size_t value_dim = 1;     // of value and head output
  std::optional<float> scale = std::nullopt;  // absent: 1 / sqrt(head_dim)
  Causal causal = Causal::none;
  size_t key_offset = 0;  // with Causal::offset: number of keys before the first query

  float effective_scale() const;
  size_t kv_head_of(size_t head) const { return head / (num_heads / num_kv_heads); }

  // Throws: Error (usage) unless all counts are positive and num_kv_heads divides num_heads.
  void check() const;

  // As the metadata of a trace has it: one JSON object, keys as the fields here.
  std::string json() const;
};

}  // namespace clearhead::attention
