// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/exact_block.h"

#include <algorithm>
#include <cmath>

#include "clearhead/attention/key_product.h"
#include "clearhead/attention/sizes.h"
#include "clearhead/kernels/elementary.h"
#include "clearhead/kernels/softmax.h"
#include "clearhead/kernels/tile.h"

namespace clearhead::attention {
ExactScratch::ExactScratch(const AttentionConfig& config, size_t value_room)
    : scores(kQueryBlock * kKeyTile),
      raw(kQueryBlock * kKeyTile),
      output(kQueryBlock * value_room),
      visible(kQueryBlock * kKeyTile),
      weights(config.precision == Precision::bfloat16 ? kQueryBlock * kernels::pair_count(kKeyTile) : 0),
      tile_rows(kQueryBlock),
      rows(kQueryBlock) {}

ExactBlock::ExactBlock(const ExactWork& work, ExactScratch& scratch, const Place& place)
    : work_(work),
      config_(work.config),
      scratch_(scratch),
      sequence_(work.sequences[place.sequence]),
      sequence_index_(place.sequence),
      head_(place.head),
      first_query_(place.block * kQueryBlock),
      count_(std::min(kQueryBlock, sequence_.query_len - first_query_)) {}

void ExactBlock::run() {
  std::fill_n(scratch_.rows.begin(), count_, kNothingSeen);
  for (const kernels::KeyTile& tile : work_.packed.tiles(sequence_index_, config_.kv_head_of(head_))) {
    tile_ = tile;
    if (!any_row_sees_tile() && !work_.stages.any()) continue;
    score_tile();
    show_tile();
    weigh_tile();
    merge_tile();
  }
  finish_rows();
}

size_t ExactBlock::query_row(size_t row) const {
  return sequence_.batch * work_.input.query_len + sequence_.query_begin + first_query_ + row;
}

std::span<float> ExactBlock::output_row(size_t row) const {
  const size_t start = query_row(row) * config_.num_heads + head_;
  return work_.output.head_output.as<float>().subspan(start * config_.value_dim, config_.value_dim);
}

// The place of a row of the tile in [batch, heads, query, key].
std::span<float> ExactBlock::stage_row(tensor::Tensor& stage, size_t row) const {
  const ScoreIndex index{config_.num_heads, work_.input.query_len, work_.input.key_len};
  const size_t start = index.start(sequence_.batch, head_, sequence_.query_begin + first_query_ + row);
  return stage.as<float>().subspan(start + sequence_.key_begin + tile_.first, tile_.count);
}

// By position: what the first row may begin to see and the last may end with.
bool ExactBlock::any_row_sees_tile() const {
  const size_t begin = visible_keys(config_, sequence_, first_query_).begin;
  const size_t end = visible_keys(config_, sequence_, first_query_ + count_ - 1).end;
  return begin < tile_.first + tile_.count && tile_.first < end;
}

// Kernel scores of the tile, -infinity where a key may not be seen.
void ExactBlock::score_tile() {
  multiply_queries(work_.editor.recipe.query_factor, scratch_.scores);
  for (size_t row = 0; row < count_; ++row) {
    work_.editor.edit(sequence_, head_, first_query_ + row, tile_.first, score_row(row));
    hide_by_position(row);
  }
}

void ExactBlock::hide_by_position(size_t row) {
  const std::span<float> scores = score_row(row);
  const auto [begin, end] = visible_keys(config_, sequence_, first_query_ + row);
  const auto place = [&](size_t key) {
    const size_t inside = std::clamp(key, tile_.first, tile_.first + tile_.count) - tile_.first;
    return scores.begin() + static_cast<std::ptrdiff_t>(inside);
  };
  std::fill(scores.begin(), place(begin), kUnseen);
  std::fill(place(end), scores.end(), kUnseen);
}

// The queries of the block, times factor, times the keys of the tile. Shapes: products [block, 256].
void ExactBlock::multiply_queries(float factor, std::vector<float>& products) const {
  const size_t width = config_.head_dim, first = (query_row(0) * config_.num_heads + head_) * width;
  FloatRoom room;
  const FloatRows query = work_.input.query.rows(first, count_, width, config_.num_heads * width, room);
  multiply_keys(config_, {query.data, query.stride, count_}, factor, tile_, products, kKeyTile);
}

void ExactBlock::show_tile() {
  ExactStages& stages = work_.stages;
  if (stages.raw_needed()) multiply_queries(1.0f, scratch_.raw);
  for (size_t row = 0; row < count_ && stages.any(); ++row) {
    const std::span<const float> raw(&scratch_.raw[row * kKeyTile], tile_.count), scores = score_row(row);
    if (stages.raw_scores) std::ranges::copy(raw, stage_row(stages.raw, row).begin());
    if (stages.scores) natural_scores(raw, row, stage_row(stages.natural, row));
    if (stages.kernel_scores) std::ranges::copy(scores, stage_row(stages.kernel, row).begin());
    if (stages.weights) std::ranges::copy(scores, stage_row(stages.weight, row).begin());
  }
}

// The raw scores of a row in natural units; what kernel scores hide is hidden here.
void ExactBlock::natural_scores(std::span<const float> raw, size_t row, std::span<float> scores) {
  std::ranges::copy(raw, scores.begin());
  work_.editor.natural(sequence_, head_, first_query_ + row, tile_.first, scores);
  const std::span<const float> kernel_scores = score_row(row);
  for (size_t j = 0; j < tile_.count; ++j) {
    if (kernel_scores[j] == kUnseen) scores[j] = kUnseen;
  }
}

// Scores become exponentials; each row's sum of exponentials times values, over the keys that it sees.
void ExactBlock::weigh_tile() {
  if (!tile_.finite) {
    std::ranges::transform(scratch_.scores, scratch_.visible.begin(),
                           [](float score) { return score == kUnseen ? uint8_t{0} : uint8_t{1}; });
  }
  for (size_t row = 0; row < count_; ++row) scratch_.tile_rows[row] = kernels::softmax_tile(score_row(row), {});
  if (config_.precision == Precision::bfloat16) return multiply_pairs();
  if (tile_.finite) return multiply_values(0, count_, 0, tile_.count, false);
  std::fill_n(scratch_.output.begin(), count_ * work_.value_room, 0.0f);
  for (size_t row = 0; row < count_; ++row) {
    for (size_t key = 0; key < tile_.count; ++key) {
      if (scratch_.visible[row * kKeyTile + key] != 0) multiply_values(row, 1, key, 1, true);
    }
  }
}

// output = exponentials times values, for some rows and the keys [key, key + depth) of the tile.
void ExactBlock::multiply_values(size_t row, size_t rows, size_t key, size_t depth, bool accumulate) {
  kernels::tile_product({.left = &scratch_.scores[row * kKeyTile + key],
                         .left_stride = kKeyTile,
                         .panels = tile_.values + key * kernels::kPanelWidth,
                         .panel_stride = tile_.value_room * kernels::kPanelWidth,
                         .output = &scratch_.output[row * work_.value_room],
                         .output_stride = work_.value_room,
                         .rows = rows,
                         .depth = depth,
                         .num_panels = kernels::panel_count(config_.value_dim),
                         .accumulate = accumulate});
}

// The same in bfloat16, for all rows and keys.
void ExactBlock::multiply_pairs() {
  const size_t pairs = kernels::pair_count(tile_.count), stride = kernels::pair_count(kKeyTile);
  for (size_t row = 0; row < count_; ++row) {
    kernels::round_powers(&scratch_.scores[row * kKeyTile], 0, 1, 0, tile_.count, &scratch_.weights[row * stride], 0,
                          &scratch_.tile_rows[row].rounded_sum);
  }
  kernels::PairProduct product{.left = scratch_.weights.data(),
                               .left_stride = stride,
                               .panels = tile_.value_pairs,
                               .panel_stride = pairs * kernels::kPanelWidth,
                               .output = scratch_.output.data(),
                               .output_stride = work_.value_room,
                               .rows = count_,
                               .pairs = pairs,
                               .num_panels = kernels::panel_count(config_.value_dim)};
  if (tile_.finite) return kernels::pair_product(product);
  for (size_t row = 0; row < count_; ++row) {
    uint8_t* visible = &scratch_.visible[row * kKeyTile];
    std::fill(visible + tile_.count, visible + kKeyTile, uint8_t{0});
    kernels::pair_product_of_visible(product, visible);
    product.left += stride, product.output += work_.value_room;
  }
}

void ExactBlock::merge_tile() {
  for (size_t row = 0; row < count_; ++row) {
    const std::span<float> output(&scratch_.output[row * work_.value_room], config_.value_dim);
    for (float& value : output) value += 0.0f;  // -0 must not tell a skipped key from one that gave 0
    merge(scratch_.rows[row], output_row(row), scratch_.tile_rows[row], output);
  }
}

void ExactBlock::finish_rows() {
  const ScoreIndex index{config_.num_heads, work_.input.query_len, work_.input.key_len};
  for (size_t row = 0; row < count_; ++row) {
    if (!config_.sinks.empty()) merge_sink(scratch_.rows[row], output_row(row), config_.sinks[head_]);
    finish(scratch_.rows[row], output_row(row));
    const size_t query = sequence_.query_begin + first_query_ + row;
    const size_t at = index.row(sequence_.batch, head_, query);
    work_.output.row_reference.as<float>()[at] = scratch_.rows[row].reference;
    work_.output.row_sum.as<float>()[at] = scratch_.rows[row].sum;
    if (!work_.stages.weights) continue;
    const size_t start = index.start(sequence_.batch, head_, query) + sequence_.key_begin;
    finish_weights(work_.stages.weight.as<float>().subspan(start, sequence_.key_len), scratch_.rows[row]);
  }
}

}  // namespace clearhead::attention
