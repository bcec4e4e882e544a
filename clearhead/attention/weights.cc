// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/weights.h"

#include <algorithm>

#include "clearhead/attention/key_product.h"
#include "clearhead/attention/merge.h"
#include "clearhead/attention/packed_keys.h"
#include "clearhead/attention/score_edit.h"
#include "clearhead/attention/sizes.h"
#include "clearhead/kernels/tile.h"

namespace clearhead::attention {
namespace {

// Where [first, first + count) and [begin, begin + len) meet; empty if they do not.
KeyRange meeting(size_t first, size_t count, size_t begin, size_t len) {
  const size_t from = std::max(first, begin);
  return {from, std::max(from, std::min(first + count, begin + len))};
}

}  // namespace

RebuiltWeights::RebuiltWeights(const AttentionConfig& config, const AttentionInput& input,
                               std::span<const float> row_reference, std::span<const float> row_sum)
    : config_(config),
      input_(input),
      sequences_(checked_sequences(config, input)),
      row_reference_(row_reference),
      row_sum_(row_sum) {
  const tensor::Shape rows{input.batch, config.num_heads, input.query_len};
  check_size("row_reference", rows, row_reference.size());
  check_size("row_sum", rows, row_sum.size());
  input_.sequences = sequences_;
}

void RebuiltWeights::read(const capture::WeightArea& area, std::span<float> weights) const {
  std::ranges::fill(weights, 0.0f);
  for (const Sequence& one : sequences_) {
    if (one.batch != area.batch) continue;
    const KeyRange queries = meeting(area.first_query, area.queries, one.query_begin, one.query_len);
    const KeyRange keys = meeting(area.first_key, area.keys, one.key_begin, one.key_len);
    for (size_t first = keys.begin; first < keys.end; first += kKeyTile) {
      const size_t count = std::min(kKeyTile, keys.end - first);
      rebuild(one, area, {area.batch, area.head, queries.begin, queries.end - queries.begin, first, count}, weights);
    }
  }
}

// A part of the area that lies in one sequence, at most kKeyTile keys wide.
void RebuiltWeights::rebuild(const Sequence& sequence, const capture::WeightArea& area, const capture::WeightArea& part,
                             std::span<float> weights) const {
  const ScoreEditor editor{config_, input_, ScoreRecipe(config_)};
  const ScoreIndex index{config_.num_heads, input_.query_len, input_.key_len};
  const size_t head_dim = config_.head_dim, kv_head = config_.kv_head_of(part.head);
  const size_t key_row = (part.batch * input_.key_len + part.first_key) * config_.num_kv_heads + kv_head;
  std::vector<float> panels(key_room(part.keys) * packed_key_width(config_)), scores(key_room(part.keys));
  FloatRoom room;
  const FloatRows keys =
      input_.key.rows(key_row * head_dim, part.keys, head_dim, config_.num_kv_heads * head_dim, room);
  pack_keys(config_, keys.data, keys.stride, part.keys, panels.data());
  const kernels::KeyTile tile = tile_at(config_, 0, part.keys, {panels.data(), nullptr});
  const size_t first = part.first_key - sequence.key_begin;
  for (size_t i = part.first_query; i < part.first_query + part.queries; ++i) {
    const size_t query_row = (part.batch * input_.query_len + i) * config_.num_heads + part.head;
    const FloatRows query = input_.query.rows(query_row * head_dim, 1, head_dim, head_dim, room);
    multiply_keys(config_, {query.data, query.stride, 1}, editor.recipe.query_factor, tile, scores, scores.size());
    const std::span<float> row = std::span(scores).first(part.keys);
    editor.edit(sequence, part.head, i - sequence.query_begin, first, row);
    const auto [begin, end] = visible_keys(config_, sequence, i - sequence.query_begin);
    for (size_t j = 0; j < part.keys; ++j) {
      if (first + j < begin || first + j >= end) row[j] = kNothingSeen.reference;
    }
    const size_t at = index.row(part.batch, part.head, i);
    finish_weights(row, {row_reference_[at], row_sum_[at]});
    const size_t place = (i - area.first_query) * area.keys + part.first_key - area.first_key;
    std::ranges::copy(row, weights.begin() + static_cast<std::ptrdiff_t>(place));
  }
}

}  // namespace clearhead::attention
