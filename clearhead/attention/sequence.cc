// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "clearhead/base/error.h"

namespace clearhead::attention {
namespace {

// No length or offset comes near the first, no position near the second, and sums of all of them do not overflow.
constexpr int64_t kFar = int64_t{1} << 60, kEverything = int64_t{1} << 62;

int64_t limited(size_t count, int64_t limit = kFar) {
  return static_cast<int64_t>(std::min(count, static_cast<size_t>(limit)));
}

void check_inside(std::string_view what, size_t begin, size_t len, size_t whole) {
  if (begin <= whole && len <= whole - begin) return;
  base::refuse("attention", fmt::format("{} of a sequence inside {}", what, whole),
               fmt::format("{} from {} on", len, begin));
}

// Whether each sequence stands behind the one before it.
bool in_order(std::span<const Sequence> sequences) {
  for (size_t i = 1; i < sequences.size(); ++i) {
    const Sequence &before = sequences[i - 1], &one = sequences[i];
    if (before.batch < one.batch) continue;
    if (before.batch > one.batch || one.query_begin < before.query_begin + before.query_len) return false;
  }
  return true;
}

// Two sequences that share a query would write to the same place.
void check_apart(std::span<const Sequence> given) {
  if (in_order(given)) return;
  std::vector<Sequence> sequences(given.begin(), given.end());
  std::erase_if(sequences, [](const Sequence& one) { return one.query_len == 0; });
  std::ranges::sort(sequences, [](const Sequence& a, const Sequence& b) {
    return std::tie(a.batch, a.query_begin) < std::tie(b.batch, b.query_begin);
  });
  for (size_t i = 1; i < sequences.size(); ++i) {
    const Sequence &before = sequences[i - 1], &one = sequences[i];
    if (before.batch != one.batch || one.query_begin >= before.query_begin + before.query_len) continue;
    base::refuse("attention", "sequences that share no query",
                 fmt::format("query {} of row {} in two", one.query_begin, one.batch));
  }
}

}  // namespace

void list_sequences(const AttentionConfig& config, const BatchSizes& sizes, std::span<const Sequence> given,
                    std::vector<Sequence>& sequences) {
  sequences.assign(given.begin(), given.end());
  for (size_t row = 0; given.empty() && row < sizes.batch; ++row) {
    sequences.push_back({row, 0, sizes.query_len, 0, sizes.key_len, config.key_offset});
  }
  for (const Sequence& one : sequences) {
    check_inside("the row", one.batch, 1, sizes.batch);
    check_inside("queries", one.query_begin, one.query_len, sizes.query_len);
    check_inside("keys", one.key_begin, one.key_len, sizes.key_len);
  }
  check_apart(sequences);
}

std::vector<Sequence> sequences_of(const AttentionConfig& config, const BatchSizes& sizes,
                                   std::span<const Sequence> given) {
  std::vector<Sequence> sequences;
  list_sequences(config, sizes, given, sequences);
  return sequences;
}

int64_t position_of(const AttentionConfig& config, const Sequence& sequence, size_t query) {
  const int64_t offset = config.causal == Causal::top_left ? 0 : std::clamp(sequence.key_offset, -kFar, kFar);
  return limited(query) + offset;
}

KeyRange visible_keys(const AttentionConfig& config, const Sequence& sequence, size_t query) {
  const int64_t position = position_of(config, sequence, query), len = limited(sequence.key_len);
  int64_t begin = limited(sequence.evicted), end = len;
  if (config.left_window) begin = std::max(begin, position - limited(*config.left_window, kEverything));
  if (config.right_window) end = std::min(end, position + limited(*config.right_window, kEverything) + 1);
  if (config.causal != Causal::none) end = std::min(end, position + 1);
  end = std::clamp<int64_t>(end, 0, len);
  return {static_cast<size_t>(std::clamp<int64_t>(begin, 0, end)), static_cast<size_t>(end)};
}

}  // namespace clearhead::attention
