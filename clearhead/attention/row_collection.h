// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "clearhead/attention/float_room.h"
#include "clearhead/attention/sequence.h"
#include "clearhead/attention/statistics.h"
#include "clearhead/kernels/row_collect.h"

namespace clearhead::attention {

// What one thread collects of the rows that it works on.
struct CollectionRoom {
  FloatRoom top, groups, overview;
  std::vector<uint32_t> keys;   // [rows, candidates], then [rows]
  std::vector<size_t> places;   // [rows]
  kernels::RowCollector parts;  // what stands where
};

// How one run collects what its statistics ask for beside evidence: which keys go where, sequence by sequence.
class RowCollection {
 public:
  // Keeps the statistics by reference. Planning again takes new memory only if there is not enough.
  void plan(std::span<const Sequence> sequences, size_t num_heads, RowStatistics& statistics);
  void make_room(CollectionRoom& room) const;

  // Before the first tile of rows of a sequence; what it gives is for kernels::attend.
  const kernels::RowCollector* begin(CollectionRoom& room, size_t sequence, size_t rows) const;

  // Rows that have ended: consecutive queries of one head of a sequence.
  struct EndedRows {
    size_t sequence, head, first_query;
    size_t first_row;                                // of [batch, num_heads, query_len]
    std::span<const kernels::RowSummary> summaries;  // with any sink
  };
  void end(CollectionRoom& room, const EndedRows& rows) const;

  // Parts that the queries of a sequence may be cut into for the threads: whole query bins, since the rows of a bin are
  // added in order.
  size_t num_parts(const Sequence& sequence) const;
  size_t first_of_part(const Sequence& sequence, size_t part) const;

 private:
  // Where a group's mass comes from: slots [first, first + count) or column first.
  struct Source {
    bool column;
    size_t first, count;
  };
  // What belongs to one sequence, as [begin, end) of all.
  struct Plan {
    size_t key_begin, key_end;    // of keys_
    size_t members;               // where its members begin
    size_t part_begin, part_end;  // of parts_
    size_t tile_begin, tile_end;  // of first_parts_
  };

  void plan_groups(std::span<const Sequence> sequences);
  void plan_members(size_t sequence, size_t key_len, Plan& plan);
  void plan_keys(size_t sequence, Plan& plan);
  void plan_overview(size_t key_len, Plan& plan);
  size_t bins_per_part(const Sequence& sequence) const;
  void end_groups(CollectionRoom& room, const EndedRows& rows) const;
  void end_overview(CollectionRoom& room, const EndedRows& rows) const;

  RowStatistics* statistics_ = nullptr;
  size_t num_heads_ = 0;
  std::span<const Sequence> sequences_;
  std::vector<Source> sources_;  // [groups]
  std::vector<Plan> plans_;      // [sequences]
  std::vector<kernels::GatheredKey> keys_;
  std::vector<kernels::GatheredDistance> distances_;
  size_t slots_ = 0, columns_ = 0, member_stride_ = 0;
  std::vector<float> members_;  // [sequences, columns, member_stride]
  std::vector<kernels::BinPart> parts_;
  std::vector<size_t> first_parts_;
  size_t most_parts_ = 0, most_tiles_ = 0;  // of any sequence
};

}  // namespace clearhead::attention
