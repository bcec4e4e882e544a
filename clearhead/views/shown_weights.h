// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "clearhead/base/parallel.h"
#include "clearhead/capture/trace.h"
#include "clearhead/capture/weight_source.h"

namespace clearhead::views {

// Weights as views look at them: nothing is stored, every part is read from the trace when it is looked at, which must
// outlive them.
using ShownWeights = std::shared_ptr<const capture::WeightSource>;

// The weights of one recorded head. Shapes: [1, 1, seq, seq].
// Throws: Error if the trace cannot show them.
ShownWeights head_weights(const capture::Trace& trace, size_t layer, size_t head);
ShownWeights head_weights(capture::Trace&& trace, size_t layer, size_t head) = delete;

// Those of all recorded heads of a layer. Shapes: [1, heads, seq, seq].
// Throws: Error if they have another shape.
ShownWeights layer_weights(const capture::Trace& trace, size_t layer);

// Which word each token belongs to; words are runs of tokens.
struct Grouping {
  std::vector<size_t> word_of;  // [seq]
  std::vector<size_t> pieces;   // [words]: number of tokens
  size_t words() const { return pieces.size(); }
};

// Sum over the pieces looked at, mean over the pieces that look. Shapes: [1, heads, words, words].
ShownWeights joined(ShownWeights weights, Grouping grouping);

// Rows and columns of some tokens only, in rising order. Shapes: [1, heads, kept, kept].
ShownWeights only_tokens(ShownWeights weights, std::vector<size_t> kept);

// One row of the first head: what query gives to every key.
std::vector<float> row_of(const capture::WeightSource& weights, size_t query);

// Calls visit(query, row [n]) for every row of the first head, on all threads, a block of rows rebuilt at a time.
template <class Visit>
void for_each_row(const capture::WeightSource& weights, const Visit& visit) {
  constexpr size_t kQueries = 16;  // of a block
  const size_t n = weights.query_len(), keys = weights.key_len();
  base::parallel_for((n + kQueries - 1) / kQueries, [&](size_t block) {
    const size_t first = block * kQueries, count = std::min(kQueries, n - first);
    std::vector<float> rows(count * keys);
    weights.tile({0, 0, first, count, 0, keys}, rows);
    for (size_t i = 0; i < count; ++i) visit(first + i, std::span<const float>(rows).subspan(i * keys, keys));
  });
}

}  // namespace clearhead::views
