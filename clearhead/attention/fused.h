// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "clearhead/attention/config.h"
#include "clearhead/attention/exact.h"
#include "clearhead/attention/statistics.h"

namespace clearhead::attention {

// Where results go.
struct AttentionSpans {
  std::span<float> head_output;    // [batch, query_len, num_heads, value_dim]
  std::span<float> row_reference;  // [batch, num_heads, query_len]
  std::span<float> row_sum;        // [batch, num_heads, query_len]
};

// Scaled dot-product attention in one pass, the same bits as exact_attention, nothing of size query_len x key_len kept.
// Holds what it works in: a second run of no greater size allocates no more than a list of the sequences. One run at a
// time.
class FusedAttention {
 public:
  FusedAttention();
  ~FusedAttention();
  FusedAttention(FusedAttention&&) noexcept;
  FusedAttention& operator=(FusedAttention&&) noexcept;

  // statistics, if not nullptr, is filled in the same pass; it changes no bit of the output.
  // Throws: Error (usage) if a span does not have the size of its shape.
  void run(const AttentionConfig& config, const AttentionInput& input, const AttentionSpans& output,
           RowStatistics* statistics = nullptr);

  struct Workspace;

 private:
  std::unique_ptr<Workspace> workspace_;
};

// The same into new tensors; each calling thread keeps what it works in.
AttentionOutput fused_attention(const AttentionConfig& config, const AttentionInput& input,
                                RowStatistics* statistics = nullptr);

}  // namespace clearhead::attention
