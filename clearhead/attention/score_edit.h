// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "clearhead/attention/config.h"
#include "clearhead/attention/exact.h"
#include "clearhead/attention/score_recipe.h"
#include "clearhead/attention/sequence.h"
#include "clearhead/kernels/softmax.h"

namespace clearhead::attention {

// What turns products of query and key into kernel scores: soft cap, mask and ALiBi.
struct ScoreEditor {
  const AttentionConfig& config;
  const AttentionInput& input;
  ScoreRecipe recipe;

  // Whether edit does anything.
  bool edits() const { return recipe.capped() || input.mask.present() || !config.alibi_slopes.empty(); }

  // The scores of one query of a head for the keys [first, first + scores.size()) of its sequence, at most kKeyTile;
  // -infinity for keys that the mask hides.
  void edit(const Sequence& sequence, size_t head, size_t query, size_t first, std::span<float> scores) const;

  // The same in natural units, as people read them, from products of query and key as they are; what the mask hides
  // is the caller's to hide.
  //
  //   s = scale q . k, or cap tanh(scale q . k / cap); plus the bias of the mask, then that of ALiBi
  void natural(const Sequence& sequence, size_t head, size_t query, size_t first, std::span<float> scores) const;

 private:
  void add_mask(const Sequence& sequence, size_t head, size_t query, size_t first, std::span<float> scores) const;
};

// Kernel scores of a row become weights, in place. A key with score -infinity is not seen.
void finish_weights(std::span<float> row, const kernels::RowSummary& summary);

}  // namespace clearhead::attention
