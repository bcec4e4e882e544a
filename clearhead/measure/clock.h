// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace clearhead::measure {

// Seconds that work takes, on the wall.
template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// How long to measure.
struct Effort {
  size_t least_rounds = 3, most_rounds = 15;
  double seconds = 1.0;        // no further round is begun after so long
  double turn_seconds = 0.01;  // something quick is repeated for so long in its turn, and counts with its median
};

// The middle one; the lower of two. Shapes: values [count], count > 0.
double median_of(std::vector<double> values);

// Calls every turn once a round, one after the other, so that whatever slows the machine down slows all of them; each
// returns its seconds, or another number. Throws: base::Interrupted between turns.
// Shapes: result [turns][rounds].
using Turn = std::function<double()>;
std::vector<std::vector<double>> take_turns(std::span<const Turn> turns, const Effort& effort);

// The seconds that work takes: run once to warm up, then the median of as many runs as take turn_seconds together; of
// what takes longer than that, the only run.
double median_seconds(const std::function<void()>& work, double turn_seconds);

}  // namespace clearhead::measure
