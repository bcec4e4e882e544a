// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/looker.h"

#include <algorithm>
#include <utility>

#include "clearhead/base/parallel.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::engine {
namespace {

constexpr size_t kSharedWeights = 4096;  // below, one thread is done before another has begun

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
  rows_.resize(base::num_threads());
  of_heads_.resize(source.num_heads());
  const auto look_from = [&](size_t head) {
    std::vector<float>& row = rows_[base::thread_index()];
    row.resize(source.key_len());
    source.row(0, head, source.query_len() - 1, row);
    of_heads_[head] = look(row, layer, head);
  };
  if (source.num_heads() * source.key_len() < kSharedWeights) {
    for (size_t head = 0; head < source.num_heads(); ++head) look_from(head);
  } else {
    base::parallel_for(source.num_heads(), look_from);
  }
  keep_strongest();
}

Look Looker::look(std::span<const float> row, size_t layer, size_t head) const {
  Look best{layer, head, 0, 0, 0};
  double rest = 0;
  size_t begin = 0;
  const auto search = [&](size_t end) {  // between two tokens on which heads rest
    for (size_t key = begin; key < std::min(end, row.size() - 1); ++key) {
      if (row[key] > best.weight) best.key = key, best.weight = row[key];
    }
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
