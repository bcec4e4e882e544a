// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "clearhead/attention/config.h"

namespace clearhead::measure {

// A problem of core attention. Written BATCHxHEADS[/KV_HEADS] LENGTH HEAD_DIM, with "1 of 4096" in the place of LENGTH
// where there are fewer queries than keys, and "causal" behind it: "1x9/3 512 64 causal".
struct AttentionShape {
  size_t batch = 1, num_heads = 1, num_kv_heads = 1, query_len = 1, key_len = 1, head_dim = 1;
  bool causal = false;  // the last query sees the last key

  // Throws: Error (usage) for another text, for 0, and for sizes that nobody has room for.
  static AttentionShape parse(std::string_view text);
  std::string text() const;

  // 4 query_len key_len head_dim for each head, half of it if causal.
  double operations() const;
  attention::AttentionConfig config() const;

  bool operator==(const AttentionShape&) const = default;
};

// Shapes of small encoders and decoders, prefill and decode.
std::span<const AttentionShape> attention_shapes();

}  // namespace clearhead::measure
