// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "clearhead/attention/config.h"
#include "clearhead/attention/exact.h"
#include "clearhead/capture/stage.h"
#include "clearhead/capture/weight_source.h"

namespace clearhead::attention {

// What a run keeps of each row.
struct KeptRows {
  std::span<const float> row_reference;  // [batch, heads, query_len], as exact_attention and FusedAttention give them
  std::span<const float> row_sum;        // [batch, heads, query_len]
};

// The weights of a run, rebuilt from what it keeps of each row:
//
//   p_ij = exp2(t_ij - r_i) / l_i      t_ij by score_recipe.h, exactly 0 for keys that may not be seen
//
// bit for bit those that exact_attention shows; or another of its stages of [query, key], which needs no rows: raw
// scores, scores or kernel scores. The spans of the input and of the rows must outlive the source.
class RebuiltWeights : public capture::WeightSource {
 public:
  // Of input, value is not read. Caches must outlive the source too.
  // Throws: Error (usage) if a span does not have the size of its shape.
  RebuiltWeights(const AttentionConfig& config, const AttentionInput& input, const KeptRows& rows,
                 capture::Stage stage = capture::Stage::weights);

  // The same where only these heads of the config stand on the head axes, and only the kv heads that they read, each in
  // rising order. Throws: Error (usage) also if a head is not below num_heads, or they do not rise.
  RebuiltWeights(const AttentionConfig& config, const AttentionInput& input, const KeptRows& rows, capture::Stage stage,
                 std::span<const size_t> heads);

  size_t batch() const override { return input_.batch; }
  size_t num_heads() const override { return heads_.size(); }
  size_t query_len() const override { return input_.query_len; }
  size_t key_len() const override { return input_.key_len; }

 private:
  // A head of the config, and the place on the key's head axis of what it reads.
  struct Head {
    size_t head, kv_place;
  };
  struct Block;

  void read(const capture::WeightArea& area, std::span<float> weights) const override;
  void read_heads(const capture::WeightArea& area, size_t heads, std::span<float> weights) const override;
  void read_group(const capture::WeightArea& area, size_t heads, std::span<float> weights) const;
  void pack(Block& block, size_t first) const;
  void find(Block& block, size_t index, size_t first) const;
  void rebuild(const Block& block, std::span<float> values) const;
  void finish_row(const Block& block, size_t index, std::span<float> row) const;

  AttentionConfig config_;
  AttentionInput input_;
  KeptRows rows_;
  capture::Stage stage_;
  std::vector<Head> heads_;  // [heads]
  size_t kv_places_ = 0;     // kv heads on the key's head axis
  std::vector<Sequence> sequences_;
};

}  // namespace clearhead::attention
