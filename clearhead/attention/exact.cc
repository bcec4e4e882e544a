// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/exact.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "clearhead/attention/merge.h"
#include "clearhead/attention/packed_keys.h"
#include "clearhead/attention/sizes.h"
#include "clearhead/base/parallel.h"
#include "clearhead/kernels/softmax.h"
#include "clearhead/kernels/tile.h"

namespace clearhead::attention {
namespace {

using capture::Stage;

constexpr float kUnseen = -std::numeric_limits<float>::infinity();
constexpr float kLog2E = std::numbers::log2e_v<float>;

// Queries that are worked on together; rows do not meet, so that this changes no bit.
constexpr size_t kQueryBlock = 48;

// The score stages that somebody wants to see; empty tensors are not wanted.
struct Shown {
  bool raw_scores = false, scores = false, kernel_scores = false, weights = false;
  tensor::Tensor raw, natural, kernel, weight;  // [batch, heads, query, key]

  bool raw_needed() const { return raw_scores || scores; }
  bool any() const { return raw_scores || scores || kernel_scores || weights; }
};

// What one thread works in.
struct Scratch {
  std::vector<float> query;                          // [block, head_dim], times the scale in log2 units
  std::vector<float> scores;                         // [block, 256]: kernel scores, then their exponentials
  std::vector<float> raw;                            // [block, 256]
  std::vector<float> output;                         // [block, value_dim up to a multiple of 16]
  std::vector<float> bias;                           // [256]
  std::vector<uint8_t> visible;                      // [block, 256]
  std::vector<uint8_t> mask_row;                     // [256]
  std::vector<kernels::RowSummary> tile_rows, rows;  // [block]
};

// Everything that the blocks share.
struct Work {
  const AttentionConfig& config;
  const AttentionInput& input;
  const PackedKeys& packed;
  AttentionOutput& output;
  Shown& shown;
  size_t value_room;   // value_dim up to a multiple of 16
  float query_factor;  // scale log2 e, rounded once
};

// The rows [first_query, first_query + count) of one head of one sequence.
class Block {
 public:
  Block(const Work& work, Scratch& scratch, size_t batch, size_t head, size_t block)
      : work_(work),
        config_(work.config),
        scratch_(scratch),
        batch_(batch),
        head_(head),
        first_query_(block * kQueryBlock),
        count_(std::min(kQueryBlock, work.input.query_len - first_query_)) {}

  void run() {
    scale_queries();
    std::fill_n(scratch_.rows.begin(), count_, kNothingSeen);
    for (size_t index = 0; index < work_.packed.num_tiles(); ++index) {
      tile_ = work_.packed.tile(batch_, config_.kv_head_of(head_), index);
      const size_t end = causal_end(config_, first_query_ + count_ - 1, work_.input.key_len);
      if (end <= tile_.first && !work_.shown.any()) break;  // no row sees this tile or one behind it
      score_tile();
      show_tile();
      weigh_tile();
      merge_tile();
    }
    finish_rows();
  }

 private:
  size_t query_start(size_t row) const {
    return ((batch_ * work_.input.query_len + first_query_ + row) * config_.num_heads + head_) * config_.head_dim;
  }
  std::span<float> output_row(size_t row) const {
    const size_t start = (batch_ * work_.input.query_len + first_query_ + row) * config_.num_heads + head_;
    return work_.output.head_output.as<float>().subspan(start * config_.value_dim, config_.value_dim);
  }
  std::span<float> score_row(size_t row) const { return {&scratch_.scores[row * kKeyTile], tile_.count}; }
  // The place of a row of the tile in [batch, heads, query, key].
  std::span<float> shown_row(tensor::Tensor& stage, size_t row) const {
    const ScoreIndex index{config_.num_heads, work_.input.query_len, work_.input.key_len};
    const size_t start = index.start(batch_, head_, first_query_ + row);
    return stage.as<float>().subspan(start + tile_.first, tile_.count);
  }

  void scale_queries() {
    for (size_t row = 0; row < count_; ++row) {
      const float* query = work_.input.query.data() + query_start(row);
      for (size_t i = 0; i < config_.head_dim; ++i) {
        scratch_.query[row * config_.head_dim + i] = query[i] * work_.query_factor;
      }
    }
  }

  // Kernel scores of the tile, -infinity where a key may not be seen.
  void score_tile() {
    multiply_keys(scratch_.query.data(), config_.head_dim, scratch_.scores.data());
    for (size_t row = 0; row < count_; ++row) {
      const std::span<float> scores = score_row(row);
      if (work_.input.mask.present()) {
        read_mask(row);
        if (!work_.input.mask.boolean()) add_bias(mask_bias(), scores);
        for (size_t j = 0; j < tile_.count; ++j) scores[j] = scratch_.mask_row[j] != 0 ? scores[j] : kUnseen;
      }
      const size_t end = causal_end(config_, first_query_ + row, work_.input.key_len);
      const size_t seen = std::clamp(end, tile_.first, tile_.first + tile_.count) - tile_.first;
      std::fill(scores.begin() + static_cast<std::ptrdiff_t>(seen), scores.end(), kUnseen);
    }
  }

  std::span<float> mask_bias() { return {scratch_.bias.data(), tile_.count}; }
  void read_mask(size_t row) {
    work_.input.mask.read_row({batch_, head_, first_query_ + row}, tile_.first, {scratch_.mask_row.data(), tile_.count},
                              mask_bias());
  }

  static void add_bias(std::span<const float> bias, std::span<float> scores) {
    for (size_t j = 0; j < scores.size(); ++j) {
      if (bias[j] != 0) scores[j] = std::fma(bias[j], kLog2E, scores[j]);
    }
  }

  // left times the keys of the tile. Shapes: left [count, head_dim] with stride; output [count, 256].
  void multiply_keys(const float* left, size_t stride, float* output) const {
    kernels::tile_product({.left = left,
                           .left_stride = stride,
                           .panels = tile_.keys,
                           .panel_stride = config_.head_dim * kernels::kPanelWidth,
                           .output = output,
                           .output_stride = kKeyTile,
                           .rows = count_,
                           .depth = config_.head_dim,
                           .num_panels = kernels::panel_count(tile_.count)});
  }

  void show_tile() {
    Shown& shown = work_.shown;
    if (shown.raw_needed()) {
      multiply_keys(work_.input.query.data() + query_start(0), config_.num_heads * config_.head_dim,
                    scratch_.raw.data());
    }
    for (size_t row = 0; row < count_ && shown.any(); ++row) {
      const std::span<const float> raw(&scratch_.raw[row * kKeyTile], tile_.count);
      if (shown.raw_scores) std::copy(raw.begin(), raw.end(), shown_row(shown.raw, row).begin());
      if (shown.scores) natural_scores(raw, row, shown_row(shown.natural, row));
      const std::span<const float> scores = score_row(row);
      if (shown.kernel_scores) std::copy(scores.begin(), scores.end(), shown_row(shown.kernel, row).begin());
      if (shown.weights) std::copy(scores.begin(), scores.end(), shown_row(shown.weight, row).begin());
    }
  }

  // The raw scores of a row, scaled and with their bias.
  void natural_scores(std::span<const float> raw, size_t row, std::span<float> scores) {
    std::fill_n(scratch_.bias.begin(), tile_.count, 0.0f);
    if (work_.input.mask.present()) read_mask(row);
    const std::span<const float> kernel_scores = score_row(row);
    const float scale = config_.effective_scale();
    for (size_t j = 0; j < tile_.count; ++j) {
      scores[j] = kernel_scores[j] == kUnseen ? kUnseen : std::fma(raw[j], scale, scratch_.bias[j]);
    }
  }

  // Scores become exponentials; each row's sum of exponentials times values, over the keys that it sees.
  void weigh_tile() {
    if (!tile_.finite) {
      std::transform(scratch_.scores.begin(), scratch_.scores.end(), scratch_.visible.begin(),
                     [](float score) { return score == kUnseen ? uint8_t{0} : uint8_t{1}; });
    }
    for (size_t row = 0; row < count_; ++row) scratch_.tile_rows[row] = kernels::softmax_tile(score_row(row), {});
    if (tile_.finite) {
      multiply_values(0, count_, 0, tile_.count, false);
      return;
    }
    std::fill_n(scratch_.output.begin(), count_ * work_.value_room, 0.0f);
    for (size_t row = 0; row < count_; ++row) {
      for (size_t key = 0; key < tile_.count; ++key) {
        if (scratch_.visible[row * kKeyTile + key] != 0) multiply_values(row, 1, key, 1, true);
      }
    }
  }

  // output = exponentials times values, for some rows and the keys [key, key + depth) of the tile.
  void multiply_values(size_t row, size_t rows, size_t key, size_t depth, bool accumulate) {
    kernels::tile_product({.left = &scratch_.scores[row * kKeyTile + key],
                           .left_stride = kKeyTile,
                           .panels = tile_.values + key * kernels::kPanelWidth,
                           .panel_stride = tile_.count * kernels::kPanelWidth,
                           .output = &scratch_.output[row * work_.value_room],
                           .output_stride = work_.value_room,
                           .rows = rows,
                           .depth = depth,
                           .num_panels = kernels::panel_count(config_.value_dim),
                           .accumulate = accumulate});
  }

  void merge_tile() {
    for (size_t row = 0; row < count_; ++row) {
      const std::span<float> output(&scratch_.output[row * work_.value_room], config_.value_dim);
      for (float& value : output) value += 0.0f;  // -0 must not tell a skipped key from one that gave 0
      merge(scratch_.rows[row], output_row(row), scratch_.tile_rows[row], output);
    }
  }

  void finish_rows() {
    const ScoreIndex index{config_.num_heads, work_.input.query_len, work_.input.key_len};
    for (size_t row = 0; row < count_; ++row) {
      finish(scratch_.rows[row], output_row(row));
      const size_t at = index.row(batch_, head_, first_query_ + row);
      work_.output.row_reference.as<float>()[at] = scratch_.rows[row].reference;
      work_.output.row_sum.as<float>()[at] = scratch_.rows[row].sum;
      if (!work_.shown.weights) continue;
      const size_t start = index.start(batch_, head_, first_query_ + row);
      finish_weights(work_.shown.weight.as<float>().subspan(start, work_.input.key_len), scratch_.rows[row]);
    }
  }

  // Kernel scores of a whole row become weights, in place.
  static void finish_weights(std::span<float> row, const kernels::RowSummary& summary) {
    if (!std::isnan(summary.sum)) return kernels::weights_of_scores(row, {}, summary, row);
    for (float& value : row) value = value == kUnseen ? 0.0f : summary.sum;
  }

  const Work& work_;
  const AttentionConfig& config_;
  Scratch& scratch_;
  size_t batch_, head_, first_query_, count_;
  PackedKeys::Tile tile_{};
};

Scratch make_scratch(const AttentionConfig& config, size_t value_room) {
  Scratch scratch;
  scratch.query.resize(kQueryBlock * config.head_dim);
  scratch.scores.resize(kQueryBlock * kKeyTile);
  scratch.raw.resize(kQueryBlock * kKeyTile);
  scratch.output.resize(kQueryBlock * value_room);
  scratch.bias.resize(kKeyTile);
  scratch.visible.resize(kQueryBlock * kKeyTile);
  scratch.mask_row.resize(kKeyTile);
  scratch.tile_rows.resize(kQueryBlock);
  scratch.rows.resize(kQueryBlock);
  return scratch;
}

Shown prepare_shown(const tensor::Shape& shape, const capture::Observer* observer, size_t layer) {
  Shown shown;
  const auto prepare = [&](Stage stage, bool& wanted, tensor::Tensor& values) {
    wanted = observer != nullptr && observer->wants(stage, layer);
    if (wanted) values = tensor::Tensor(shape);
  };
  prepare(Stage::raw_scores, shown.raw_scores, shown.raw);
  prepare(Stage::scores, shown.scores, shown.natural);
  prepare(Stage::kernel_scores, shown.kernel_scores, shown.kernel);
  prepare(Stage::weights, shown.weights, shown.weight);
  return shown;
}

void show(const AttentionOutput& output, const Shown& shown, capture::Observer& observer, size_t layer) {
  if (shown.raw_scores) observer.observe(Stage::raw_scores, layer, shown.raw);
  if (shown.scores) observer.observe(Stage::scores, layer, shown.natural);
  if (shown.kernel_scores) observer.observe(Stage::kernel_scores, layer, shown.kernel);
  if (observer.wants(Stage::row_reference, layer)) {
    observer.observe(Stage::row_reference, layer, output.row_reference);
  }
  if (observer.wants(Stage::row_sum, layer)) observer.observe(Stage::row_sum, layer, output.row_sum);
  if (shown.weights) observer.observe(Stage::weights, layer, shown.weight);
}

}  // namespace

AttentionOutput exact_attention(const AttentionConfig& config, const AttentionInput& input, capture::Observer* observer,
                                size_t layer) {
  config.check();
  check_size("query", {input.batch, input.query_len, config.num_heads, config.head_dim}, input.query.size());
  check_size("key", {input.batch, input.key_len, config.num_kv_heads, config.head_dim}, input.key.size());
  check_size("value", {input.batch, input.key_len, config.num_kv_heads, config.value_dim}, input.value.size());

  AttentionOutput output;
  output.head_output = tensor::Tensor({input.batch, input.query_len, config.num_heads, config.value_dim});
  output.row_reference = tensor::Tensor({input.batch, config.num_heads, input.query_len});
  output.row_sum = tensor::Tensor({input.batch, config.num_heads, input.query_len});
  Shown shown = prepare_shown({input.batch, config.num_heads, input.query_len, input.key_len}, observer, layer);

  const PackedKeys packed(config, input);
  const size_t value_room = kernels::panel_count(config.value_dim) * kernels::kPanelWidth;
  const auto factor = static_cast<float>(static_cast<double>(config.effective_scale()) * std::numbers::log2e);
  const Work work{config, input, packed, output, shown, value_room, factor};
  const size_t blocks = (input.query_len + kQueryBlock - 1) / kQueryBlock;
  const size_t units = input.batch * config.num_heads * blocks;
  std::vector<Scratch> scratch(base::num_threads());
  for (Scratch& one : scratch) one = make_scratch(config, value_room);
  base::parallel_for(units, [&](size_t unit) {
    const size_t head_unit = unit / blocks;
    Block(work, scratch[base::thread_index()], head_unit / config.num_heads, head_unit % config.num_heads,
          unit % blocks)
        .run();
  });
  if (observer != nullptr) show(output, shown, *observer, layer);
  return output;
}

}  // namespace clearhead::attention
