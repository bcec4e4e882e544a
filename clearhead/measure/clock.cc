// SPDX-License-Identifier: Apache-2.0
#include "clearhead/measure/clock.h"

#include <algorithm>

#include "clearhead/base/interrupt.h"

namespace clearhead::measure {

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<std::vector<double>> take_turns(std::span<const Turn> turns, const Effort& effort) {
  std::vector<std::vector<double>> results(turns.size());
  double spent = 0;
  for (size_t round = 0; round < effort.most_rounds; ++round) {
    if (round >= effort.least_rounds && spent > effort.seconds) break;
    spent += seconds_of([&] {
      for (size_t i = 0; i < turns.size(); ++i) {
        base::check_interrupt();
        results[i].push_back(turns[i]());
      }
    });
  }
  return results;
}

double median_seconds(const std::function<void()>& work, double turn_seconds) {
  double spent = seconds_of(work);
  if (spent > turn_seconds) return spent;  // what takes long was cold for a small part of it only
  std::vector<double> seconds;
  for (spent = 0; spent < turn_seconds || seconds.empty(); spent += seconds.back()) seconds.push_back(seconds_of(work));
  return median_of(std::move(seconds));
}

}  // namespace clearhead::measure
