// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/work_units.h"

#include <algorithm>
#include <tuple>

#include "clearhead/attention/packed_keys.h"
#include "clearhead/attention/row_collection.h"
#include "clearhead/base/parallel.h"
#include "clearhead/kernels/attention_tile.h"

namespace clearhead::attention {
namespace {

// The dearest first; in place, which a stable sort is not.
bool earlier(const Unit& a, const Unit& b) {
  return std::tie(b.cost, a.sequence, a.kv_head, a.part) < std::tie(a.cost, b.sequence, b.kv_head, b.part);
}

}  // namespace

size_t num_blocks(size_t queries) { return (queries + kernels::kMostRows - 1) / kernels::kMostRows; }

size_t first_of_block(size_t queries, size_t block) { return queries * block / num_blocks(queries); }

WorkUnits::WorkUnits(const AttentionConfig& config, std::span<const Sequence> sequences, const RowCollection* map)
    : config_(config), sequences_(sequences), map_(map) {
  for (const Sequence& sequence : sequences_) {
    longest_query_ = std::max(longest_query_, sequence.query_len);
    longest_key_ = std::max(longest_key_, sequence.key_len);
  }
}

Cut WorkUnits::choose(bool keys) const {
  const size_t threads = base::num_threads(), kv_units = sequences_.size() * config_.num_kv_heads;
  const bool even = kv_units % threads == 0 || kv_units >= 8 * threads;
  if (even) return Cut::kv_heads;
  const bool few_rows = config_.num_heads / config_.num_kv_heads * longest_query_ <= kernels::kMostRows;
  return few_rows && keys && tile_count(longest_key_) > 1 ? Cut::keys : Cut::queries;
}

void WorkUnits::list(Cut cut, std::vector<Unit>& units) const {
  units.clear();
  for (size_t index = 0; index < sequences_.size(); ++index) {
    const Sequence& one = sequences_[index];
    const size_t parts = cut == Cut::kv_heads  ? 1
                         : cut == Cut::queries ? num_parts(one)
                                               : std::max<size_t>(1, tile_count(one.key_len));
    for (size_t unit = 0; one.query_len > 0 && unit < parts * config_.num_kv_heads; ++unit) {
      units.push_back({index, unit / parts, unit % parts, cost(cut, one, unit % parts)});
    }
  }
  if (cut != Cut::keys) std::ranges::sort(units, earlier);
}

size_t WorkUnits::num_parts(const Sequence& one) const {
  return map_ != nullptr ? map_->num_parts(one) : num_blocks(one.query_len);
}

size_t WorkUnits::first_of_part(const Sequence& one, size_t part) const {
  return map_ != nullptr ? map_->first_of_part(one, part) : first_of_block(one.query_len, part);
}

// Products of a query with a key, for one head.
size_t WorkUnits::cost(Cut cut, const Sequence& sequence, size_t part) const {
  if (cut != Cut::queries) return sequence.query_len * sequence.key_len;
  const size_t first = first_of_part(sequence, part), end = first_of_part(sequence, part + 1);
  const auto [first_key, end_key] = visible_keys(config_, sequence, std::max<size_t>(1, end) - 1);
  return (end_key - first_key) * (end - first);
}

}  // namespace clearhead::attention
