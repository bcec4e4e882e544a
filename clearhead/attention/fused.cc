// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/fused.h"

#include <algorithm>
#include <array>
#include <vector>

#include "clearhead/attention/float_room.h"
#include "clearhead/attention/merge.h"
#include "clearhead/attention/packed_keys.h"
#include "clearhead/attention/prefetch.h"
#include "clearhead/attention/row_collection.h"
#include "clearhead/attention/score_edit.h"
#include "clearhead/attention/sizes.h"
#include "clearhead/attention/work_units.h"
#include "clearhead/base/parallel.h"
#include "clearhead/kernels/attention_tile.h"
#include "clearhead/kernels/tile.h"

namespace clearhead::attention {
namespace {

// What one thread works in.
struct Scratch {
  FloatRoom query, scores, tile_output, output;  // as AttentionRows has them
  FloatRoom weights;                             // pairs of weights, in bfloat16
  FloatRoom wide_query;                          // queries of a narrow type as floats
  FloatRoom keys, values;                        // packed keys of one kv head of a sequence
  std::vector<kernels::KeyTile> tiles;           // of that kv head
  std::array<kernels::KeyRange, kernels::kMostRows> seen;
  std::array<kernels::RowSummary, kernels::kMostRows> summaries, keys_summaries;  // with and without a sink
  std::array<kernels::RowEvidence, kernels::kMostRows> evidence;
  std::array<int64_t, kernels::kMostRows> positions;
  CollectionRoom collected;
};

}  // namespace

struct FusedAttention::Workspace {
  std::vector<Sequence> sequences;
  std::vector<Scratch> scratch;                     // [threads]
  std::vector<Unit> units;                          // longest first
  PackedKeys packed;                                // of all sequences
  FloatRoom tile_output;                            // [units, rows, value_dim up to whole panels]
  std::vector<kernels::RowSummary> tile_summaries;  // [units, rows]
  RowCollection collection;
};

namespace {

template <class Element>
void grow(std::vector<Element>& elements, size_t count) {
  if (elements.size() < count) elements.resize(count);
}

// One run of one input.
class Run {
 public:
  Run(const ScoreEditor& editor, std::span<const Sequence> sequences, const AttentionSpans& output,
      RowStatistics* statistics, FusedAttention::Workspace& workspace)
      : editor_(editor),
        config_(editor.config),
        input_(editor.input),
        sequences_(sequences),
        output_(output),
        statistics_(statistics),
        workspace_(workspace),
        in_pairs_(config_.precision == Precision::bfloat16),
        collection_(statistics != nullptr && statistics->collects() ? &workspace.collection : nullptr),
        cuts_(config_, sequences, statistics != nullptr && statistics->overview ? collection_ : nullptr),
        group_(config_.num_heads / config_.num_kv_heads),
        value_room_(padded_value_dim(config_)) {}

  void run() {
    if (collection_ != nullptr) collection_->plan(sequences_, config_.num_heads, *statistics_);
    const Cut cut = cuts_.choose(statistics_ == nullptr);
    cuts_.list(cut, workspace_.units);
    prepare(cut);
    switch (cut) {
      case Cut::kv_heads: return run_kv_heads();
      case Cut::queries: return run_queries();
      case Cut::keys: return run_keys();
    }
  }

 private:
  // Queries [first_query, first_query + queries) of the heads [first_head, ...) of one sequence, head after head.
  struct Rows {
    const Sequence& sequence;
    size_t first_head, first_query, queries, rows;

    size_t head(size_t row) const { return first_head + row / queries; }
    size_t query(size_t row) const { return first_query + row % queries; }
  };
  struct EditContext {
    const ScoreEditor& editor;
    const Rows& rows;
  };

  void prepare(Cut cut) {
    grow(workspace_.scratch, base::num_threads());
    for (Scratch& scratch : workspace_.scratch) {
      scratch.query.at_least(kernels::kMostRows * config_.head_dim);
      scratch.scores.at_least((kernels::kMostRows + 16) * kernels::kScoreStride);
      if (collection_ != nullptr) collection_->make_room(scratch.collected);
      scratch.tile_output.at_least(kernels::kMostRows * value_room_);
      scratch.output.at_least(kernels::kMostRows * value_room_);
      if (in_pairs_) scratch.weights.at_least(kernels::kMostRows * kernels::kPairStride);
      if (cut == Cut::queries) continue;
      grow(scratch.tiles, tile_count(cuts_.longest_key()));
      if (stand_packed(input_)) continue;
      scratch.keys.at_least(key_room(cuts_.longest_key()) * packed_key_width(config_));
      scratch.values.at_least(key_room(cuts_.longest_key()) * packed_value_width(config_));
    }
    if (cut == Cut::queries) workspace_.packed.pack(config_, input_, sequences_);
    if (cut == Cut::keys) {
      workspace_.tile_output.at_least(workspace_.units.size() * kernels::kMostRows * value_room_);
      grow(workspace_.tile_summaries, workspace_.units.size() * kernels::kMostRows);
    }
  }

  Scratch& scratch() { return workspace_.scratch[base::thread_index()]; }

  // Whether a unit finds what it reads in a core's own cache, once it has been there.
  bool is_near() const {
    constexpr size_t kNearFloats = size_t{1} << 18;
    const size_t keys = input_.batch * input_.key_len * config_.num_kv_heads * (config_.head_dim + config_.value_dim);
    const size_t queries = input_.batch * input_.query_len * config_.num_heads * (config_.head_dim + config_.value_dim);
    return keys + queries <= kNearFloats;
  }

  // Asks for part of parts of the keys and values of a unit, if they have room beside those that are worked on.
  void prefetch_unit(size_t number, size_t part, size_t parts) const {
    constexpr size_t kMostFloats = size_t{1} << 16;
    if (number >= workspace_.units.size()) return;
    const Unit& unit = workspace_.units[number];
    const Sequence& one = sequences_[unit.sequence];
    if (one.key_len * (config_.head_dim + config_.value_dim) > kMostFloats) return;
    const size_t first = (one.batch * input_.key_len + one.key_begin) * config_.num_kv_heads + unit.kv_head;
    const auto rows = [&](const float* numbers, size_t width) {
      return ScatteredRows{numbers + first * width, config_.num_kv_heads * width, width, one.key_len};
    };
    prefetch(rows(input_.key.data(), config_.head_dim), part, parts);
    prefetch(rows(input_.value.data(), config_.value_dim), part, parts);
  }

  void run_kv_heads() {
    const bool ahead = input_.caches.empty() && input_.key.data() != nullptr && !is_near();
    base::parallel_for(workspace_.units.size(), [&](size_t number) {
      const Unit& unit = workspace_.units[number];
      const Sequence& sequence = sequences_[unit.sequence];
      Scratch& own = scratch();
      const size_t tiles = tile_count(sequence.key_len);
      for (size_t i = 0; i < tiles; ++i) {
        own.tiles[i] = pack_tile(config_, input_, sequence, unit.kv_head, i, {own.keys.data(), own.values.data()});
      }
      attend_queries(unit, 0, sequence.query_len, std::span(own.tiles).first(tiles), [&](size_t block, size_t blocks) {
        if (ahead) prefetch_unit(number + base::num_threads(), block, blocks);
      });
    });
  }

  void run_queries() {
    base::parallel_for(workspace_.units.size(), [&](size_t number) {
      const Unit& unit = workspace_.units[number];
      const Sequence& one = sequences_[unit.sequence];
      attend_queries(unit, cuts_.first_of_part(one, unit.part), cuts_.first_of_part(one, unit.part + 1),
                     workspace_.packed.tiles(unit.sequence, unit.kv_head), [](size_t, size_t) {});
    });
  }

  void run_keys() {
    base::parallel_for(workspace_.units.size(), [&](size_t number) {
      const Unit& unit = workspace_.units[number];
      const Sequence& sequence = sequences_[unit.sequence];
      Scratch& own = scratch();
      const Rows rows = rows_of(unit, 0, sequence.query_len, group_);
      const EditContext context{editor_, rows};
      kernels::AttentionRows work = prepare_rows(rows, context, own);
      work.output = tile_output(number, 0);
      work.summaries = &workspace_.tile_summaries[number * kernels::kMostRows];
      kernels::KeyTile tile{};
      if (sequence.key_len > 0) {
        tile = pack_tile(config_, input_, sequence, unit.kv_head, unit.part, {own.keys.data(), own.values.data()});
      }
      kernels::attend(work, {&tile, sequence.key_len > 0 ? size_t{1} : size_t{0}});
    });
    for (size_t number = 0; number < workspace_.units.size();) number = merge_tiles(number);
  }

  float* tile_output(size_t number, size_t row) {
    return workspace_.tile_output.data() + (number * kernels::kMostRows + row) * value_room_;
  }

  // Merges the tiles of one kv head from left to right, beginning with unit number; returns the unit behind them.
  size_t merge_tiles(size_t number) {
    const Unit& unit = workspace_.units[number];
    const size_t end = number + std::max<size_t>(1, tile_count(sequences_[unit.sequence].key_len));
    const Rows rows = rows_of(unit, 0, sequences_[unit.sequence].query_len, group_);
    for (size_t row = 0; row < rows.rows; ++row) {
      kernels::RowSummary summary = kNothingSeen;
      const std::span<float> output = output_row(rows, row);
      for (size_t tile = number; tile < end; ++tile) {
        merge(summary, output, workspace_.tile_summaries[tile * kernels::kMostRows + row],
              {tile_output(tile, row), config_.value_dim});
      }
      if (!config_.sinks.empty()) merge_sink(summary, output, config_.sinks[rows.head(row)]);
      finish(summary, output);
      write_summary(rows, row, summary);
    }
    return end;
  }

  Rows rows_of(const Unit& unit, size_t first_query, size_t queries, size_t heads) const {
    return {sequences_[unit.sequence], unit.kv_head * group_, first_query, queries, heads * queries};
  }

  // Queries [begin, end) of every head of the group, block by block, and before(block, blocks) ahead of each.
  template <class Before>
  void attend_queries(const Unit& unit, size_t begin, size_t end, std::span<const kernels::KeyTile> tiles,
                      const Before& before) {
    const size_t blocks = num_blocks(end - begin);
    for (size_t block = 0; block < blocks; ++block) {
      before(block, blocks);
      attend_block(unit, begin + first_of_block(end - begin, block), begin + first_of_block(end - begin, block + 1),
                   tiles);
    }
  }

  void attend_block(const Unit& unit, size_t first, size_t end, std::span<const kernels::KeyTile> tiles) {
    Scratch& own = scratch();
    for (size_t member = 0; member < group_; ++member) {
      Rows rows = rows_of(unit, first, end - first, 1);
      rows.first_head += member;
      const EditContext context{editor_, rows};
      kernels::AttentionRows work = prepare_rows(rows, context, own);
      if (collection_ != nullptr) {
        work.evidence.collector = collection_->begin(own.collected, unit.sequence, rows.rows);
      }
      attend_and_finish(rows, work, tiles_seen({work.seen, work.rows}, tiles), own);
      for (size_t row = 0; row < rows.rows; ++row) write_summary(rows, row, work.summaries[row]);
      if (statistics_ == nullptr) continue;
      statistics_->set(index_of(rows, 0), std::span(own.evidence).first(rows.rows),
                       std::span(own.keys_summaries).first(rows.rows), std::span(own.summaries).first(rows.rows));
      if (collection_ == nullptr) continue;
      collection_->end(own.collected, {unit.sequence, rows.first_head, first, index_of(rows, 0),
                                       std::span(own.summaries).first(rows.rows)});
    }
  }

  void attend_and_finish(const Rows& rows, kernels::AttentionRows& work, std::span<const kernels::KeyTile> tiles,
                         Scratch& own) {
    float* const destination = output_row(rows, 0).data();
    work.destination_stride = config_.num_heads * config_.value_dim;
    if (config_.sinks.empty()) work.destination = destination;
    kernels::attend(work, tiles);
    std::copy_n(own.summaries.begin(), rows.rows, own.keys_summaries.begin());
    if (config_.sinks.empty()) return;
    for (size_t row = 0; row < rows.rows; ++row) {
      merge_sink(work.summaries[row], {work.output + row * value_room_, config_.value_dim},
                 config_.sinks[rows.first_head]);
    }
    work.destination = destination;
    kernels::finish_rows(work);
  }

  kernels::AttentionRows prepare_rows(const Rows& rows, const EditContext& context, Scratch& own) const {
    for (size_t row = 0; row < rows.rows; ++row) {
      own.seen[row] = visible_keys(config_, rows.sequence, rows.query(row));
    }
    kernels::AttentionRows work{};
    const FloatRows query = input_.query.rows(place_of(rows, 0) * config_.head_dim, rows.queries,
                                              rows.rows / rows.queries * config_.head_dim,
                                              config_.num_heads * config_.head_dim, own.wide_query);
    work.query = query.data;
    work.query_stride = query.stride;
    work.queries = rows.queries;
    work.query_factor = editor_.recipe.query_factor;
    work.seen = own.seen.data();
    work.rows = rows.rows;
    work.head_dim = config_.head_dim;
    work.value_dim = config_.value_dim;
    if (editor_.edits()) work.edit = {&edit_scores, &context};
    work.scaled_query = own.query.data();
    if (in_pairs_) work.query_pairs = own.query.pairs(), work.weight_pairs = own.weights.pairs();
    work.scores = own.scores.data();
    work.tile_output = own.tile_output.data();
    work.summaries = own.summaries.data();
    work.output = own.output.data();
    if (statistics_ == nullptr) return work;
    for (size_t row = 0; row < rows.rows; ++row) {
      own.positions[row] = position_of(config_, rows.sequence, rows.query(row));
    }
    work.evidence = {own.positions.data(), own.evidence.data()};
    return work;
  }

  static void edit_scores(const void* context, size_t row, size_t first, std::span<float> scores) {
    const auto& [editor, rows] = *static_cast<const EditContext*>(context);
    editor.edit(rows.sequence, rows.head(row), rows.query(row), first, scores);
  }

  // The place of a row in [batch, query_len, num_heads].
  size_t place_of(const Rows& rows, size_t row) const {
    const size_t query = rows.sequence.batch * input_.query_len + rows.sequence.query_begin + rows.query(row);
    return query * config_.num_heads + rows.head(row);
  }

  std::span<float> output_row(const Rows& rows, size_t row) const {
    return output_.head_output.subspan(place_of(rows, row) * config_.value_dim, config_.value_dim);
  }

  // The place of a row in [batch, num_heads, query_len].
  size_t index_of(const Rows& rows, size_t row) const {
    const ScoreIndex index{config_.num_heads, input_.query_len, input_.key_len};
    return index.row(rows.sequence.batch, rows.head(row), rows.sequence.query_begin + rows.query(row));
  }

  void write_summary(const Rows& rows, size_t row, const kernels::RowSummary& summary) const {
    const size_t at = index_of(rows, row);
    output_.row_reference[at] = summary.reference;
    output_.row_sum[at] = summary.sum;
  }

  const ScoreEditor& editor_;
  const AttentionConfig& config_;
  const AttentionInput& input_;
  std::span<const Sequence> sequences_;
  const AttentionSpans& output_;
  RowStatistics* statistics_;  // or nullptr
  FusedAttention::Workspace& workspace_;
  bool in_pairs_;              // the products are in bfloat16
  RowCollection* collection_;  // or nullptr
  WorkUnits cuts_;
  size_t group_, value_room_;
};

}  // namespace

FusedAttention::FusedAttention() : workspace_(std::make_unique<Workspace>()) {}
FusedAttention::~FusedAttention() = default;
FusedAttention::FusedAttention(FusedAttention&&) noexcept = default;
FusedAttention& FusedAttention::operator=(FusedAttention&&) noexcept = default;

void FusedAttention::run(const AttentionConfig& config, const AttentionInput& input, const AttentionSpans& output,
                         RowStatistics* statistics) {
  const tensor::Shape rows{input.batch, config.num_heads, input.query_len};
  std::vector<Sequence>& sequences = workspace_->sequences;
  list_checked_sequences(config, input, sequences);
  check_size("head_output", {input.batch, input.query_len, config.num_heads, config.value_dim},
             output.head_output.size());
  check_size("row_reference", rows, output.row_reference.size());
  check_size("row_sum", rows, output.row_sum.size());
  if (!input.sequences.empty()) {  // queries that are in no sequence
    std::ranges::fill(output.head_output, 0.0f);
    std::ranges::fill(output.row_reference, kNothingSeen.reference);
    std::ranges::fill(output.row_sum, 0.0f);
  }
  const ScoreEditor editor{config, input, ScoreRecipe(config)};
  if (statistics != nullptr) statistics->prepare(rows.elements(), config.num_heads, sequences);
  Run(editor, sequences, output, statistics, *workspace_).run();
}

AttentionOutput fused_attention(const AttentionConfig& config, const AttentionInput& input, RowStatistics* statistics) {
  thread_local FusedAttention fused;
  checked_sequences(config, input);
  AttentionOutput output;
  output.head_output = tensor::Tensor({input.batch, input.query_len, config.num_heads, config.value_dim});
  output.row_reference = tensor::Tensor({input.batch, config.num_heads, input.query_len});
  output.row_sum = tensor::Tensor({input.batch, config.num_heads, input.query_len});
  fused.run(config, input,
            {output.head_output.as<float>(), output.row_reference.as<float>(), output.row_sum.as<float>()}, statistics);
  return output;
}

}  // namespace clearhead::attention
