// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/received.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "clearhead/attention/float_room.h"
#include "clearhead/attention/key_product.h"
#include "clearhead/attention/merge.h"
#include "clearhead/attention/packed_keys.h"
#include "clearhead/attention/score_edit.h"
#include "clearhead/attention/sizes.h"
#include "clearhead/base/error.h"
#include "clearhead/base/parallel.h"
#include "clearhead/kernels/key_sums.h"

namespace clearhead::attention {
namespace {

// One key tile of one head of a sequence: all queries, one after another, so that no other unit adds to its keys.
struct Unit {
  size_t sequence, head, tile;
};

class Sweep {
 public:
  Sweep(const AttentionConfig& config, const AttentionInput& input, std::span<const Sequence> sequences,
        std::span<const float> row_reference, std::span<const float> row_sum, std::span<float> received)
      : config_(config),
        input_(input),
        sequences_(sequences),
        editor_{config, input, ScoreRecipe(config)},
        index_{config.num_heads, input.query_len, input.key_len},
        row_reference_(row_reference),
        row_sum_(row_sum),
        received_(received) {}

  void run() {
    std::vector<Unit> units;
    for (size_t i = 0; i < sequences_.size(); ++i) {
      const size_t tiles = tile_count(sequences_[i].key_len);
      for (size_t unit = 0; unit < tiles * config_.num_heads; ++unit) units.push_back({i, unit / tiles, unit % tiles});
    }
    base::parallel_for(units.size(), [&](size_t number) { run(units[number]); });
  }

 private:
  void run(const Unit& unit) const {
    const Sequence& one = sequences_[unit.sequence];
    const size_t first = unit.tile * kKeyTile, count = std::min(kKeyTile, one.key_len - first);
    const size_t key_row = (one.batch * input_.key_len + one.key_begin + first) * config_.num_kv_heads;
    thread_local FloatRoom keys, scores, floats;
    const FloatRows rows = input_.key.rows((key_row + config_.kv_head_of(unit.head)) * config_.head_dim, count,
                                           config_.head_dim, config_.num_kv_heads * config_.head_dim, floats);
    pack_keys(config_, rows.data, rows.stride, count, keys.at_least(key_room(count) * packed_key_width(config_)));
    const kernels::KeyTile tile = tile_at(config_, first, count, {keys.data(), nullptr});
    scores.at_least(kernels::kMostRows * kernels::kScoreStride);
    std::array<double, kKeyTile> sums{};
    for (size_t query = 0; query < one.query_len; query += kernels::kMostRows) {
      add_queries(unit, tile, query, std::min(kernels::kMostRows, one.query_len - query), scores.data(),
                  std::span(sums).first(count));
    }
    const size_t place = (one.batch * config_.num_heads + unit.head) * input_.key_len + one.key_begin + first;
    std::transform(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(count), &received_[place], [](double sum) {
      return std::isnan(sum) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(sum);
    });
  }

  void add_queries(const Unit& unit, const kernels::KeyTile& tile, size_t first, size_t count, float* scores,
                   std::span<double> sums) const {
    const Sequence& one = sequences_[unit.sequence];
    std::array<KeyRange, kernels::kMostRows> seen;
    bool any = false;
    for (size_t i = 0; i < count; ++i) {
      seen[i] = visible_keys(config_, one, first + i);
      any = any || (seen[i].begin < tile.first + tile.count && seen[i].end > tile.first);
    }
    if (!any) return;
    const size_t query_row = (one.batch * input_.query_len + one.query_begin + first) * config_.num_heads + unit.head;
    const size_t stride = kernels::kScoreStride;
    thread_local FloatRoom floats;
    const FloatRows queries = input_.query.rows(query_row * config_.head_dim, count, config_.head_dim,
                                                config_.num_heads * config_.head_dim, floats);
    multiply_keys(config_, {queries.data, queries.stride, count}, editor_.recipe.query_factor, tile,
                  {scores, count * stride}, stride);
    std::array<kernels::RowSummary, kernels::kMostRows> rows;
    for (size_t i = 0; i < count; ++i) {
      const std::span<float> row(scores + i * stride, tile.count);
      editor_.edit(one, unit.head, first + i, tile.first, row);
      const auto place = [&](size_t key) {
        const size_t inside = std::clamp(key, tile.first, tile.first + tile.count) - tile.first;
        return row.begin() + static_cast<std::ptrdiff_t>(inside);
      };
      std::fill(row.begin(), place(seen[i].begin), kNothingSeen.reference);
      std::fill(place(seen[i].end), row.end(), kNothingSeen.reference);
      const size_t at = index_.row(one.batch, unit.head, one.query_begin + first + i);
      rows[i] = {row_reference_[at], row_sum_[at]};
    }
    kernels::add_to_key_sums(scores, stride, std::span(rows).first(count), sums);
  }

  const AttentionConfig& config_;
  const AttentionInput& input_;
  std::span<const Sequence> sequences_;
  ScoreEditor editor_;
  ScoreIndex index_;
  std::span<const float> row_reference_, row_sum_;
  std::span<float> received_;
};

}  // namespace

void attention_received(const AttentionConfig& config, const AttentionInput& input,
                        std::span<const float> row_reference, std::span<const float> row_sum,
                        std::span<float> received) {
  if (!input.caches.empty()) base::refuse("received attention", "keys and values as they came", "a cache");
  const std::vector<Sequence> sequences = checked_sequences(config, input);
  const tensor::Shape rows{input.batch, config.num_heads, input.query_len};
  check_size("row_reference", rows, row_reference.size());
  check_size("row_sum", rows, row_sum.size());
  check_size("received", {input.batch, config.num_heads, input.key_len}, received.size());
  std::ranges::fill(received, 0.0f);
  Sweep(config, input, sequences, row_reference, row_sum, received).run();
}

}  // namespace clearhead::attention
