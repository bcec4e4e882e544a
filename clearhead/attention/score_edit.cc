// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/score_edit.h"

#include <array>
#include <cmath>
#include <cstdint>

#include "clearhead/attention/merge.h"
#include "clearhead/kernels/elementary.h"

namespace clearhead::attention {

void ScoreEditor::edit(const Sequence& sequence, size_t head, size_t query, size_t first,
                       std::span<float> scores) const {
  if (recipe.capped()) {
    kernels::tanh(scores, scores);
    for (float& score : scores) score *= recipe.cap_factor;
  }
  if (input.mask.present()) add_mask(sequence, head, query, first, scores);
  if (config.alibi_slopes.empty()) return;
  const int64_t distance = static_cast<int64_t>(first) - position_of(config, sequence, query);
  for (size_t j = 0; j < scores.size(); ++j) {
    if (scores[j] == kNothingSeen.reference) continue;
    scores[j] = add_bias(alibi_bias(config.alibi_slopes[head], distance + static_cast<int64_t>(j)), scores[j]);
  }
}

void ScoreEditor::add_mask(const Sequence& sequence, size_t head, size_t query, size_t first,
                           std::span<float> scores) const {
  std::array<uint8_t, kKeyTile> visible;
  std::array<float, kKeyTile> bias;
  input.mask.read_row({sequence.batch, head, sequence.query_begin + query}, sequence.key_begin + first,
                      std::span(visible).first(scores.size()), std::span(bias).first(scores.size()));
  for (size_t j = 0; j < scores.size(); ++j) {
    if (!input.mask.boolean()) scores[j] = add_bias(bias[j], scores[j]);
    if (visible[j] == 0) scores[j] = kNothingSeen.reference;
  }
}

void ScoreEditor::natural(const Sequence& sequence, size_t head, size_t query, size_t first,
                          std::span<float> scores) const {
  std::array<uint8_t, kKeyTile> visible;
  std::array<float, kKeyTile> bias{};
  if (input.mask.present()) {
    input.mask.read_row({sequence.batch, head, sequence.query_begin + query}, sequence.key_begin + first,
                        std::span(visible).first(scores.size()), std::span(bias).first(scores.size()));
  }
  float factor = config.effective_scale();
  if (recipe.capped()) {
    for (float& score : scores) score *= recipe.query_factor;
    kernels::tanh(scores, scores);
    factor = *config.soft_cap;
  }
  const int64_t distance = static_cast<int64_t>(first) - position_of(config, sequence, query);
  for (size_t j = 0; j < scores.size(); ++j) {
    scores[j] = std::fma(scores[j], factor, bias[j]);
    if (!config.alibi_slopes.empty()) {
      scores[j] += alibi_bias(config.alibi_slopes[head], distance + static_cast<int64_t>(j));
    }
  }
}

void finish_weights(std::span<float> row, const kernels::RowSummary& summary) {
  if (!std::isnan(summary.sum)) return kernels::weights_of_scores(row, {}, summary, row);
  for (float& value : row) value = value == kNothingSeen.reference ? 0.0f : summary.sum;
}

}  // namespace clearhead::attention
