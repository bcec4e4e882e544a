// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/looker.h"

#include <algorithm>
#include <array>
#include <utility>

#include "clearhead/base/parallel.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::engine {
namespace {

constexpr size_t kSharedWeights = 4096;  // below, one thread is done before another has begun

// The largest of some weights and of `least`; NaN does not count.
float largest(std::span<const float> weights, float least) {
  std::array<float, 16> lanes;  // side by side, for vector registers
  lanes.fill(least);
  size_t at = 0;
  for (; at + lanes.size() <= weights.size(); at += lanes.size()) {
    for (size_t i = 0; i < lanes.size(); ++i) lanes[i] = weights[at + i] > lanes[i] ? weights[at + i] : lanes[i];
  }
  for (; at < weights.size(); ++at) lanes[0] = std::max(lanes[0], weights[at]);
  return std::ranges::max(lanes);
}

}  // namespace

Looker::Looker(size_t wanted, std::vector<uint8_t> resting) : wanted_(wanted) {
  if (!resting.empty()) resting[0] = 1;
  for (size_t place = 0; place < resting.size(); ++place) {
    if (resting[place] != 0) resting_.push_back(place);
  }
}

bool Looker::wants(capture::Stage stage, size_t) const { return wanted_ > 0 && stage == capture::Stage::weights; }

void Looker::observe(capture::Stage stage, size_t layer, const tensor::TensorView& values) {
  observe_source(stage, layer, capture::StoredWeights(values));
}

void Looker::observe_source(capture::Stage, size_t layer, const capture::WeightSource& source) {
  const size_t heads = source.num_heads(), keys = source.key_len();
  const size_t shares = heads * keys < kSharedWeights ? 1 : base::num_threads();
  rows_.resize(shares);
  of_heads_.resize(heads);
  base::parallel_for(shares, [&](size_t share) {
    const size_t first = heads * share / shares, end = heads * (share + 1) / shares;
    std::vector<float>& rows = rows_[share];
    rows.resize((end - first) * keys);
    source.rows(0, first, end - first, source.query_len() - 1, rows);
    for (size_t head = first; head < end; ++head) {
      of_heads_[head] = look(std::span(rows).subspan((head - first) * keys, keys), layer, head);
    }
  });
  keep_strongest();
}

Look Looker::look(std::span<const float> row, size_t layer, size_t head) const {
  Look best{layer, head, 0, 0, 0};
  double rest = 0;
  size_t begin = 0;
  const auto search = [&](size_t end) {  // between two tokens on which heads rest
    const size_t stop = std::min(end, row.size() - 1);
    if (begin >= stop) return;
    const std::span<const float> part = row.subspan(begin, stop - begin);
    const float weight = largest(part, best.weight);
    if (!(weight > best.weight)) return;
    best.key = begin + static_cast<size_t>(std::ranges::find(part, weight) - part.begin());
    best.weight = weight;
  };
  for (const size_t place : resting_) {
    if (place >= row.size()) break;
    rest += static_cast<double>(row[place]);
    search(place);
    begin = place + 1;
  }
  search(row.size());
  best.strength = static_cast<double>(best.weight) * (1 - rest);
  return best;
}

void Looker::keep_strongest() {
  const auto weaker = [](const Look& a, const Look& b) { return a.strength < b.strength; };
  const auto strongest = std::ranges::max_element(of_heads_, weaker);
  if (strongest != of_heads_.end() && strongest->weight > 0) looks_.push_back(*strongest);
}

std::vector<Look> Looker::take() {
  std::ranges::stable_sort(looks_, [](const Look& a, const Look& b) { return a.strength > b.strength; });
  if (looks_.size() > wanted_) looks_.resize(wanted_);
  return std::exchange(looks_, {});
}

}  // namespace clearhead::engine
