// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "clearhead/attention/config.h"
#include "clearhead/attention/exact.h"
#include "clearhead/capture/weight_source.h"

namespace clearhead::attention {

// The weights of a run, rebuilt from what it keeps of each row:
//
//   p_ij = exp2(t_ij - r_i) / l_i      t_ij by score_recipe.h, exactly 0 for keys that may not be seen
//
// bit for bit those that exact_attention shows. The spans of the input and of the rows must outlive the source.
class RebuiltWeights : public capture::WeightSource {
 public:
  // Shapes: row_reference, row_sum [batch, num_heads, query_len], as exact_attention and fused_attention give them. Of
  // input, value is not read.
  // Throws: Error (usage) if a span does not have the size of its shape.
  RebuiltWeights(const AttentionConfig& config, const AttentionInput& input, std::span<const float> row_reference,
                 std::span<const float> row_sum);

  size_t batch() const override { return input_.batch; }
  size_t num_heads() const override { return config_.num_heads; }
  size_t query_len() const override { return input_.query_len; }
  size_t key_len() const override { return input_.key_len; }

 private:
  void read(const capture::WeightArea& area, std::span<float> weights) const override;
  void rebuild(const Sequence& sequence, const capture::WeightArea& area, const capture::WeightArea& part,
               std::span<float> weights) const;

  AttentionConfig config_;
  AttentionInput input_;
  std::vector<Sequence> sequences_;
  std::span<const float> row_reference_, row_sum_;
};

}  // namespace clearhead::attention
