// SPDX-License-Identifier: Apache-2.0
// Every row statistic by its definition, in double, from the weights that the exact path shows.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "clearhead/attention/statistics.h"
#include "problem.h"

namespace clearhead::tests {

// What one row of weights says.
struct DefinedRow {
  double sum = 0, entropy = 0, mean_distance = 0;
  std::vector<size_t> order;       // the keys that are seen, by falling score, of equal ones the lower key first
  std::vector<double> group_mass;  // [groups]
};

// What the weights of a problem say, computed by sums as they stand in statistics.h.
class StatisticsOfWeights {
 public:
  explicit StatisticsOfWeights(const Problem& problem) : problem_(problem) {
    problem.run(&seen_);
    sequences_ =
        attention::sequences_of(problem.config, {problem.batch, problem.query_len, problem.key_len}, problem.sequences);
  }

  const std::vector<attention::Sequence>& sequences() const { return sequences_; }

  // The place of a row in [batch, num_heads, query_len].
  size_t row(const attention::Sequence& one, size_t head, size_t query) const {
    return (one.batch * problem_.config.num_heads + head) * problem_.query_len + one.query_begin + query;
  }
  std::span<const float> weights(const attention::Sequence& one, size_t head, size_t query) const {
    return stage(capture::Stage::weights, one, head, query);
  }

  DefinedRow define(size_t sequence, size_t head, size_t query, const attention::RowStatistics& asked) const {
    const attention::Sequence& one = sequences_[sequence];
    const auto p = weights(one, head, query), scores = stage(capture::Stage::kernel_scores, one, head, query);
    const int64_t position = attention::position_of(problem_.config, one, query);
    DefinedRow defined;
    for (size_t j = 0; j < p.size(); ++j) {
      const double weight = p[j];
      defined.sum += weight;
      if (weight > 0) defined.entropy -= weight * std::log(weight);
      defined.mean_distance += weight * std::abs(static_cast<double>(static_cast<int64_t>(j) - position));
      if (scores[j] > -std::numeric_limits<float>::infinity()) defined.order.push_back(j);
    }
    std::ranges::stable_sort(defined.order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    for (const attention::KeyGroup& group : asked.groups) {
      double mass = 0;
      for (size_t j = 0; j < p.size(); ++j) {
        if (belongs(group, sequence, static_cast<int64_t>(j), position)) mass += static_cast<double>(p[j]);
      }
      defined.group_mass.push_back(mass);
    }
    return defined;
  }

  // Sum and maximum of one cell.
  std::pair<double, double> cell(size_t sequence, size_t head, const attention::OverviewBins& bins, size_t query_bin,
                                 size_t key_bin) const {
    const attention::Sequence& one = sequences_[sequence];
    double sum = 0, maximum = 0;
    for (size_t i = one.query_len * query_bin / bins.queries; i < one.query_len * (query_bin + 1) / bins.queries; ++i) {
      const auto p = weights(one, head, i);
      for (size_t j = one.key_len * key_bin / bins.keys; j < one.key_len * (key_bin + 1) / bins.keys; ++j) {
        sum += static_cast<double>(p[j]);
        maximum = std::max(maximum, static_cast<double>(p[j]));
      }
    }
    return {sum, maximum};
  }

 private:
  std::span<const float> stage(capture::Stage stage, const attention::Sequence& one, size_t head, size_t query) const {
    return seen_.values(stage).subspan(row(one, head, query) * problem_.key_len + one.key_begin, one.key_len);
  }

  static bool belongs(const attention::KeyGroup& group, size_t sequence, int64_t key, int64_t position) {
    if (group.distance) return key == position + *group.distance;
    return std::ranges::binary_search(group.keys[group.keys.size() == 1 ? 0 : sequence], static_cast<size_t>(key));
  }

  const Problem& problem_;
  Everything seen_;
  std::vector<attention::Sequence> sequences_;
};

// Every float of the statistics of a run, one behind the other.
inline std::vector<float> bits_of(const attention::RowStatistics& found) {
  std::vector<float> all;
  for (const auto* floats : {&found.entropy, &found.mean_distance, &found.strongest_weight, &found.group_mass,
                             &found.top_weight, &found.overview_maximum}) {
    all.insert(all.end(), floats->begin(), floats->end());
  }
  const auto append = [&all](const auto& values) {
    const size_t begin = all.size(), bytes = values.size() * sizeof(values[0]);
    all.resize(begin + (bytes + 3) / 4);
    if (bytes > 0) std::memcpy(&all[begin], values.data(), bytes);
  };
  append(found.strongest_key);
  append(found.top_key);
  append(found.overview_sum);
  return all;
}

}  // namespace clearhead::tests
