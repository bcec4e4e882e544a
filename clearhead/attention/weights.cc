// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "clearhead/attention/key_product.h"
#include "clearhead/attention/key_value_cache.h"
#include "clearhead/attention/merge.h"
#include "clearhead/attention/packed_keys.h"
#include "clearhead/attention/score_edit.h"
#include "clearhead/attention/sizes.h"
#include "clearhead/base/error.h"

namespace clearhead::attention {
namespace {

using capture::Stage;

constexpr size_t kRowsTogether = 16;

// Where [first, first + count) and [begin, begin + len) meet; empty if they do not.
KeyRange meeting(size_t first, size_t count, size_t begin, size_t len) {
  const size_t from = std::max(first, begin);
  return {from, std::max(from, std::min(first + count, begin + len))};
}

std::vector<size_t> all_heads(const AttentionConfig& config) {
  std::vector<size_t> heads(config.num_heads);
  std::iota(heads.begin(), heads.end(), size_t{0});
  return heads;
}

}  // namespace

// The part of an area that lies in one sequence and at most kKeyTile keys of it: queries of one head, or one query of
// heads that share their keys.
struct RebuiltWeights::Block {
  const capture::WeightArea& area;
  size_t heads;
  const Sequence& sequence;
  const ScoreEditor& editor;
  size_t first_in_sequence;  // the first key as the sequence counts
  KeyRange queries;          // on the axis
  size_t first_element;      // of the first row of queries, row_stride elements from row to row
  size_t row_stride, keys;
  size_t shift, room;              // keys of the tile before the first, and all keys of the tile up to whole panels
  std::vector<float> panels = {};  // the keys, packed
  kernels::KeyTile tile = {};      // that stands there or in a cache

  size_t rows() const { return std::max(heads, queries.end - queries.begin); }
  size_t head(size_t row) const { return area.head + (heads > 1 ? row : 0); }  // its place on the axis
  size_t query(size_t row) const { return queries.begin + (heads > 1 ? 0 : row); }
  // Where the row stands in the area.
  size_t place(size_t row) const { return heads > 1 ? row : query(row) - area.first_query; }

  // products [count, room] = rows [first, first + count) of queries, times factor, times the keys
  void multiply(size_t first, size_t count, float factor, std::span<float> products) const {
    FloatRoom floats;
    const size_t from = first_element + first * row_stride;
    const FloatRows rows = editor.input.query.rows(from, count, editor.config.head_dim, row_stride, floats);
    multiply_keys(editor.config, {rows.data, rows.stride, count}, factor, tile, products, room);
  }
};

RebuiltWeights::RebuiltWeights(const AttentionConfig& config, const AttentionInput& input, const KeptRows& rows,
                               Stage stage)
    : RebuiltWeights(config, input, rows, stage, all_heads(config)) {}

RebuiltWeights::RebuiltWeights(const AttentionConfig& config, const AttentionInput& input, const KeptRows& rows,
                               Stage stage, std::span<const size_t> heads)
    : config_(config), input_(input), rows_(rows), stage_(stage) {
  config.check();
  for (size_t head : heads) {
    if (head >= config.num_heads || (!heads_.empty() && head <= heads_.back().head)) {
      base::refuse("weights", fmt::format("heads below {} that rise", config.num_heads), fmt::format("{}", head));
    }
    const bool same = !heads_.empty() && config.kv_head_of(heads_.back().head) == config.kv_head_of(head);
    if (!same) ++kv_places_;
    heads_.push_back({head, kv_places_ - 1});
  }
  check_size("query", {input.batch, input.query_len, heads_.size(), config.head_dim}, input.query.size());
  if (input.caches.empty()) {
    check_size("key", {input.batch, input.key_len, kv_places_, config.head_dim}, input.key.size());
  } else {
    check_size("caches", {input.batch}, input.caches.size());
  }
  if (stage == Stage::weights) {
    const tensor::Shape shape{input.batch, heads_.size(), input.query_len};
    check_size("row_reference", shape, rows.row_reference.size());
    check_size("row_sum", shape, rows.row_sum.size());
  }
  list_sequences(config, {input.batch, input.query_len, input.key_len}, input.sequences, sequences_);
  for (Sequence& one : sequences_) {
    if (!input.caches.empty()) one.evicted = input.caches[one.batch]->evicted();
  }
  input_.sequences = sequences_;
}

void RebuiltWeights::read(const capture::WeightArea& area, std::span<float> weights) const {
  read_group(area, 1, weights);
}

void RebuiltWeights::read_heads(const capture::WeightArea& area, size_t heads, std::span<float> weights) const {
  capture::WeightArea group = area;
  for (size_t done = 0; done < heads; group.head = area.head + done) {
    const size_t first = done;
    while (done < heads && heads_[area.head + done].kv_place == heads_[group.head].kv_place) ++done;
    read_group(group, done - first, weights.subspan(first * area.keys, (done - first) * area.keys));
  }
}

// Heads from that of the area on share their keys; there is one query if there are several.
void RebuiltWeights::read_group(const capture::WeightArea& area, size_t heads, std::span<float> weights) const {
  const bool hidden_is_zero = stage_ == Stage::weights || stage_ == Stage::raw_scores;
  std::ranges::fill(weights, hidden_is_zero ? 0.0f : kNothingSeen.reference);
  const ScoreEditor editor{config_, input_, ScoreRecipe(config_)};
  for (const Sequence& one : sequences_) {
    if (one.batch != area.batch) continue;
    const KeyRange queries = meeting(area.first_query, area.queries, one.query_begin, one.query_len);
    const KeyRange keys = meeting(area.first_key, area.keys, one.key_begin, one.key_len);
    for (size_t first = keys.begin, count = 0; first < keys.end && queries.begin < queries.end; first += count) {
      const size_t in_tile = (first - one.key_begin) % kKeyTile;
      count = std::min(kKeyTile - in_tile, keys.end - first);
      if (first - one.key_begin < one.evicted) continue;
      const size_t query_row = (area.batch * input_.query_len + queries.begin) * heads_.size() + area.head;
      Block block{area,
                  heads,
                  one,
                  editor,
                  first - one.key_begin,
                  queries,
                  query_row * config_.head_dim,
                  (heads > 1 ? 1 : heads_.size()) * config_.head_dim,
                  count,
                  input_.caches.empty() ? 0 : in_tile % kernels::kPanelWidth,
                  key_room(input_.caches.empty() ? count : in_tile % kernels::kPanelWidth + count)};
      input_.caches.empty() ? pack(block, first) : find(block, (first - one.key_begin) / kKeyTile, in_tile);
      rebuild(block, weights.subspan(first - area.first_key));
    }
  }
}

// The keys of a block, the first of them at place first of the axis, packed.
void RebuiltWeights::pack(Block& block, size_t first) const {
  const size_t row = (block.area.batch * input_.key_len + first) * kv_places_ + heads_[block.area.head].kv_place;
  FloatRoom floats;
  const FloatRows rows =
      input_.key.rows(row * config_.head_dim, block.keys, config_.head_dim, kv_places_ * config_.head_dim, floats);
  block.panels.resize(block.room * packed_key_width(config_));
  pack_keys(config_, rows.data, rows.stride, block.keys, block.panels.data());
  block.tile = tile_at(config_, 0, block.keys, {block.panels.data(), nullptr});
}

// The keys of a block that stand in tile index of a cache from key first of the tile on: the panels that they are in.
void RebuiltWeights::find(Block& block, size_t index, size_t first) const {
  const KeyValueCache& cache = *input_.caches[block.area.batch];
  std::vector<float> values;
  if (!stand_packed(input_)) {
    block.panels.resize(kKeyTile * config_.head_dim);
    values.resize(kKeyTile * padded_value_dim(config_));
  }
  block.tile = cache.tile(config_.kv_head_of(heads_[block.area.head].head), index, block.panels.data(), values.data());
  block.tile.keys += (first - block.shift) * config_.head_dim;
  block.tile.count = block.shift + block.keys;
}

// Writes the block to values, the area from the block's first key on.
void RebuiltWeights::rebuild(const Block& block, std::span<float> values) const {
  const size_t rows = block.rows();
  std::vector<float> products(std::min(kRowsTogether, rows) * block.room);
  std::vector<float> natural;
  if (stage_ == Stage::scores) natural.resize(products.size());
  const float factor = stage_ == Stage::raw_scores ? 1.0f : block.editor.recipe.query_factor;
  for (size_t first = 0; first < rows; first += kRowsTogether) {
    const size_t count = std::min(kRowsTogether, rows - first);
    block.multiply(first, count, factor, products);
    if (stage_ == Stage::scores) block.multiply(first, count, 1.0f, natural);
    for (size_t i = 0; i < count; ++i) {
      const std::span<float> row = std::span(products).subspan(i * block.room + block.shift, block.keys);
      if (stage_ != Stage::raw_scores) finish_row(block, first + i, row);
      if (stage_ == Stage::scores) {
        const std::span<float> shown = std::span(natural).subspan(i * block.room + block.shift, block.keys);
        block.editor.natural(block.sequence, heads_[block.head(first + i)].head,
                             block.query(first + i) - block.sequence.query_begin, block.first_in_sequence, shown);
        for (size_t j = 0; j < row.size(); ++j) {
          if (row[j] != kNothingSeen.reference) row[j] = shown[j];
        }
      }
      std::ranges::copy(row, values.subspan(block.place(first + i) * block.area.keys, block.keys).begin());
    }
  }
}

// Products become kernel scores, or weights where those are rebuilt.
void RebuiltWeights::finish_row(const Block& block, size_t index, std::span<float> row) const {
  const size_t place = block.head(index), query = block.query(index), first = block.first_in_sequence;
  const size_t in_sequence = query - block.sequence.query_begin;
  block.editor.edit(block.sequence, heads_[place].head, in_sequence, first, row);
  const KeyRange seen = visible_keys(config_, block.sequence, in_sequence);
  const size_t before = std::min(std::max(seen.begin, first) - first, row.size());
  const size_t end = std::clamp(std::max(seen.end, first) - first, before, row.size());
  std::ranges::fill(row.first(before), kNothingSeen.reference);
  std::ranges::fill(row.subspan(end), kNothingSeen.reference);
  if (stage_ != Stage::weights) return;
  const size_t at = (block.area.batch * heads_.size() + place) * input_.query_len + query;
  finish_weights(row, {rows_.row_reference[at], rows_.row_sum[at]});
}

}  // namespace clearhead::attention
