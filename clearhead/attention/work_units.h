// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "clearhead/attention/config.h"
#include "clearhead/attention/sequence.h"

namespace clearhead::attention {

class RowCollection;

// How a run of the fused pass is cut into units for the threads. No cut changes a bit.
enum class Cut {
  kv_heads,  // a unit packs a kv head's keys and attends with all its queries
  queries,   // all keys are packed first, a unit is a part of the queries of a kv head
  keys,      // a unit is one key tile of a kv head, its rows are merged afterwards
};

// A part of a kv head of a sequence: all of it, some queries, or a key tile.
struct Unit {
  size_t sequence, kv_head, part, cost;
};

// Blocks of at most kernels::kMostRows queries, of nearly the same size.
size_t num_blocks(size_t queries);
size_t first_of_block(size_t queries, size_t block);

// The cuts that are possible for sequences; holds on to what it is given.
class WorkUnits {
 public:
  // map: what collects an overview, whose query bins no unit may share with another; nullptr: nobody does.
  WorkUnits(const AttentionConfig& config, std::span<const Sequence> sequences, const RowCollection* map);

  // keys: whether rows may be cut along their keys.
  Cut choose(bool keys) const;
  // The dearest units first; those of Cut::keys from left to right.
  void list(Cut cut, std::vector<Unit>& units) const;

  // Parts of the queries of a sequence, for Cut::queries.
  size_t num_parts(const Sequence& one) const;
  size_t first_of_part(const Sequence& one, size_t part) const;

  size_t longest_query() const { return longest_query_; }
  size_t longest_key() const { return longest_key_; }

 private:
  size_t cost(Cut cut, const Sequence& sequence, size_t part) const;

  const AttentionConfig& config_;
  std::span<const Sequence> sequences_;
  const RowCollection* map_;
  size_t longest_query_ = 0, longest_key_ = 0;
};

}  // namespace clearhead::attention
