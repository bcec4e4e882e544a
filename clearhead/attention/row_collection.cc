// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/row_collection.h"

#include <algorithm>

#include "clearhead/attention/merge.h"
#include "clearhead/attention/packed_keys.h"
#include "clearhead/kernels/attention_tile.h"

namespace clearhead::attention {
namespace {

using kernels::kRowStride;

// Groups of up to so many keys are gathered key by key.
constexpr size_t kMostGathered = 4;

// Queries that one part of a cut should have at most, where bins are small enough.
constexpr size_t kPartQueries = 4 * kernels::kMostRows;

// Where cell of cells begins.
size_t cell_begin(size_t len, size_t cells, size_t cell) { return len * cell / cells; }

// The cell that a place lies in.
size_t cell_of(size_t len, size_t cells, size_t place) {
  size_t cell = place * cells / len;
  while (cell_begin(len, cells, cell + 1) <= place) ++cell;
  while (cell_begin(len, cells, cell) > place) --cell;
  return cell;
}

const std::vector<size_t>& keys_of(const KeyGroup& group, size_t sequence) {
  return group.keys[group.keys.size() == 1 ? 0 : sequence];
}

}  // namespace

void RowCollection::plan(std::span<const Sequence> sequences, size_t num_heads, RowStatistics& statistics) {
  statistics_ = &statistics;
  num_heads_ = num_heads;
  sequences_ = sequences;
  plans_.assign(sequences.size(), {});
  plan_groups(sequences);
  parts_.clear();
  first_parts_.clear();
  most_parts_ = most_tiles_ = 0;
  for (size_t i = 0; i < sequences.size() && statistics.overview; ++i) plan_overview(sequences[i].key_len, plans_[i]);
}

void RowCollection::plan_groups(std::span<const Sequence> sequences) {
  sources_.clear();
  keys_.clear();
  distances_.clear();
  slots_ = columns_ = 0;
  for (const KeyGroup& group : statistics_->groups) {
    if (group.distance) {
      distances_.push_back({*group.distance, slots_});
      sources_.push_back({false, slots_++, 1});
      continue;
    }
    size_t most = 0;
    for (const std::vector<size_t>& keys : group.keys) most = std::max(most, keys.size());
    const bool column = most > kMostGathered;
    sources_.push_back({column, column ? columns_ : slots_, column ? 1 : most});
    column ? ++columns_ : slots_ += most;
  }
  member_stride_ = 0;
  for (const Sequence& one : sequences) member_stride_ = std::max(member_stride_, key_room(one.key_len));
  members_.assign(sequences.size() * columns_ * member_stride_, 0.0f);
  for (size_t i = 0; i < sequences.size(); ++i) {
    plan_keys(i, plans_[i]);
    plan_members(i, sequences[i].key_len, plans_[i]);
  }
}

void RowCollection::plan_keys(size_t sequence, Plan& plan) {
  plan.key_begin = keys_.size();
  for (size_t g = 0; g < sources_.size(); ++g) {
    const KeyGroup& group = statistics_->groups[g];
    if (sources_[g].column || group.distance) continue;
    size_t slot = sources_[g].first;
    for (size_t key : keys_of(group, sequence)) keys_.push_back({key, slot++});
  }
  plan.key_end = keys_.size();
  std::sort(keys_.begin() + static_cast<std::ptrdiff_t>(plan.key_begin), keys_.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
}

void RowCollection::plan_members(size_t sequence, size_t key_len, Plan& plan) {
  plan.members = sequence * columns_ * member_stride_;
  for (size_t g = 0; g < sources_.size(); ++g) {
    if (!sources_[g].column) continue;
    float* members = members_.data() + plan.members + sources_[g].first * member_stride_;
    for (size_t key : keys_of(statistics_->groups[g], sequence)) {
      if (key < key_len) members[key] = 1.0f;
    }
  }
}

void RowCollection::plan_overview(size_t key_len, Plan& plan) {
  const size_t bins = statistics_->overview->keys;
  plan.part_begin = parts_.size();
  plan.tile_begin = first_parts_.size();
  size_t bin = 0;
  for (size_t tile = 0; tile < tile_count(key_len); ++tile) {
    first_parts_.push_back(parts_.size() - plan.part_begin);
    const size_t last = std::min(key_len, (tile + 1) * kKeyTile);
    for (size_t begin = tile * kKeyTile; begin < last;) {
      while (cell_begin(key_len, bins, bin + 1) <= begin) ++bin;
      const size_t end = std::min(last, cell_begin(key_len, bins, bin + 1));
      parts_.push_back({begin, end, bin, tile});
      begin = end;
    }
  }
  first_parts_.push_back(parts_.size() - plan.part_begin);
  plan.part_end = parts_.size();
  plan.tile_end = first_parts_.size();
  most_parts_ = std::max(most_parts_, plan.part_end - plan.part_begin);
  most_tiles_ = std::max(most_tiles_, tile_count(key_len));
}

void RowCollection::make_room(CollectionRoom& room) const {
  const size_t rows = kernels::kMostRows;
  kernels::RowCollector& parts = room.parts;
  parts = {};
  room.places.resize(rows);
  if (statistics_->top > 0) {
    float* floats = room.top.at_least(rows * kernels::kTopRoom + 17 * kRowStride);
    room.keys.resize(rows * kernels::kTopRoom + rows);
    parts.top = {statistics_->top,
                 floats,
                 room.keys.data(),
                 room.keys.data() + rows * kernels::kTopRoom,
                 floats + rows * kernels::kTopRoom,
                 floats + rows * kernels::kTopRoom + kRowStride};
  }
  parts.groups.slots = slots_;
  parts.groups.distances = distances_;
  parts.groups.columns = columns_;
  parts.groups.member_stride = member_stride_;
  parts.groups.scores = room.groups.at_least((slots_ + columns_ + 1) * kRowStride);
  parts.groups.sums = parts.groups.scores + slots_ * kRowStride;
  parts.groups.references = parts.groups.sums + columns_ * kRowStride;
  if (!statistics_->overview) return;
  const size_t bins = statistics_->overview->keys;
  parts.overview.sums = room.overview.at_least((2 * most_parts_ + most_tiles_) * kRowStride + (2 * bins + 16) * 16);
  parts.overview.maxima = parts.overview.sums + most_parts_ * kRowStride;
  parts.overview.references = parts.overview.maxima + most_parts_ * kRowStride;
}

const kernels::RowCollector* RowCollection::begin(CollectionRoom& room, size_t sequence, size_t rows) const {
  const Plan& plan = plans_[sequence];
  kernels::RowCollector& parts = room.parts;
  parts.groups.keys = std::span(keys_).subspan(plan.key_begin, plan.key_end - plan.key_begin);
  parts.groups.members = members_.data() + plan.members;
  parts.overview.parts = std::span(parts_).subspan(plan.part_begin, plan.part_end - plan.part_begin);
  parts.overview.first_parts = std::span(first_parts_).subspan(plan.tile_begin, plan.tile_end - plan.tile_begin);
  kernels::begin_collecting(parts, rows);
  return &parts;
}

void RowCollection::end(CollectionRoom& room, const EndedRows& rows) const {
  const size_t top = statistics_->top;
  if (top > 0) {
    kernels::finish_top(
        room.parts.top, rows.summaries,
        {statistics_->top_weight.data() + rows.first_row * top, statistics_->top_key.data() + rows.first_row * top});
  }
  if (!sources_.empty()) end_groups(room, rows);
  if (!room.parts.overview.parts.empty()) end_overview(room, rows);
}

void RowCollection::end_groups(CollectionRoom& room, const EndedRows& rows) const {
  const kernels::GroupsOfRows& groups = room.parts.groups;
  kernels::finish_groups(groups, rows.summaries);
  for (size_t g = 0; g < sources_.size(); ++g) {
    const Source& source = sources_[g];
    const float* masses = (source.column ? groups.sums : groups.scores) + source.first * kRowStride;
    for (size_t row = 0; row < rows.summaries.size(); ++row) {
      float mass = source.count > 0 ? masses[row] : 0 * rows.summaries[row].sum;
      for (size_t i = 1; i < source.count; ++i) mass += masses[i * kRowStride + row];
      statistics_->group_mass[(rows.first_row + row) * sources_.size() + g] = mass;
    }
  }
}

void RowCollection::end_overview(CollectionRoom& room, const EndedRows& rows) const {
  const OverviewBins& bins = *statistics_->overview;
  const size_t query_len = sequences_[rows.sequence].query_len;
  size_t bin = cell_of(query_len, bins.queries, rows.first_query);
  for (size_t row = 0; row < rows.summaries.size(); ++row) {
    while (cell_begin(query_len, bins.queries, bin + 1) <= rows.first_query + row) ++bin;
    room.places[row] = bin;
  }
  const size_t map = (rows.sequence * num_heads_ + rows.head) * bins.queries * bins.keys;
  kernels::finish_overview(
      room.parts.overview, rows.summaries,
      {bins.keys, statistics_->overview_sum.data() + map, statistics_->overview_maximum.data() + map,
       room.places.data(), room.parts.overview.references + most_tiles_ * kRowStride});
}

size_t RowCollection::bins_per_part(const Sequence& sequence) const {
  const size_t bins = statistics_->overview->queries, width = (sequence.query_len + bins - 1) / bins;
  return std::max<size_t>(1, kPartQueries / std::max<size_t>(1, width));  // a sequence may have no queries
}

size_t RowCollection::num_parts(const Sequence& sequence) const {
  const size_t per_part = bins_per_part(sequence);
  return (statistics_->overview->queries + per_part - 1) / per_part;
}

size_t RowCollection::first_of_part(const Sequence& sequence, size_t part) const {
  const size_t bins = statistics_->overview->queries;
  return cell_begin(sequence.query_len, bins, std::min(bins, part * bins_per_part(sequence)));
}

}  // namespace clearhead::attention
