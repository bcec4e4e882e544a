// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "clearhead/attention/exact.h"
#include "clearhead/attention/exact_stages.h"
#include "clearhead/attention/merge.h"
#include "clearhead/attention/packed_keys.h"
#include "clearhead/attention/score_edit.h"
#include "clearhead/attention/sequence.h"

namespace clearhead::attention {

// Queries that are worked on together; rows do not meet, so that this changes no bit.
constexpr size_t kQueryBlock = 48;

// The score of a key that may not be seen.
constexpr float kUnseen = -std::numeric_limits<float>::infinity();

// Everything that the blocks of one run share.
struct ExactWork {
  const AttentionConfig& config;
  const AttentionInput& input;
  std::span<const Sequence> sequences;
  const PackedKeys& packed;
  ScoreEditor editor;
  size_t value_room;  // value_dim up to a multiple of 16
  AttentionOutput& output;
  ExactStages& stages;
};

// What one thread works in.
struct ExactScratch {
  explicit ExactScratch(const AttentionConfig& config, size_t value_room);

  std::vector<float> scores;                         // [block, 256]: kernel scores, then their exponentials
  std::vector<float> raw;                            // [block, 256]
  std::vector<float> output;                         // [block, value_dim up to a multiple of 16]
  std::vector<uint8_t> visible;                      // [block, 256]
  std::vector<kernels::Pair> weights;                // [block, 128], in bfloat16
  std::vector<kernels::RowSummary> tile_rows, rows;  // [block]
};

// The queries [block * kQueryBlock, ...) of one head of one sequence, from scores to output.
class ExactBlock {
 public:
  struct Place {
    size_t sequence, head, block;
  };
  ExactBlock(const ExactWork& work, ExactScratch& scratch, const Place& place);

  void run();

 private:
  // The row of [batch, query_len] and the place in the output of a query of the block.
  size_t query_row(size_t row) const;
  std::span<float> output_row(size_t row) const;
  std::span<float> score_row(size_t row) const { return {&scratch_.scores[row * kKeyTile], tile_.count}; }
  std::span<float> stage_row(tensor::Tensor& stage, size_t row) const;

  bool any_row_sees_tile() const;
  void score_tile();
  void hide_by_position(size_t row);
  void multiply_queries(float factor, std::vector<float>& products) const;
  void show_tile();
  void natural_scores(std::span<const float> raw, size_t row, std::span<float> scores);
  void weigh_tile();
  void multiply_values(size_t row, size_t rows, size_t key, size_t depth, bool accumulate);
  void multiply_pairs();
  void merge_tile();
  void finish_rows();

  const ExactWork& work_;
  const AttentionConfig& config_;
  ExactScratch& scratch_;
  const Sequence& sequence_;
  size_t sequence_index_, head_, first_query_, count_;
  kernels::KeyTile tile_{};
};

}  // namespace clearhead::attention
