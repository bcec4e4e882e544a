// SPDX-License-Identifier: Apache-2.0
#include "bench/peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "clearhead/base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peak.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace clearhead::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Runs steps rounds of 12 independent multiply-adds; returns the number of operations.
double multiply_add_rounds(size_t steps, float* sink) {
  const hn::CappedTag<float, 16> tag;
  const auto factor = hn::Set(tag, 0.999f), term = hn::Set(tag, 0.001f);
  const auto start = [&](float value)
                         HWY_ATTR { return hn::Set(tag, value); };  // all different, or they would be merged
  auto a = start(1), b = start(2), c = start(3), d = start(4), e = start(5), f = start(6);
  auto g = start(7), h = start(8), i = start(9), j = start(10), k = start(11), l = start(12);
  for (size_t step = 0; step < steps; ++step) {
    a = hn::MulAdd(a, factor, term), b = hn::MulAdd(b, factor, term), c = hn::MulAdd(c, factor, term);
    d = hn::MulAdd(d, factor, term), e = hn::MulAdd(e, factor, term), f = hn::MulAdd(f, factor, term);
    g = hn::MulAdd(g, factor, term), h = hn::MulAdd(h, factor, term), i = hn::MulAdd(i, factor, term);
    j = hn::MulAdd(j, factor, term), k = hn::MulAdd(k, factor, term), l = hn::MulAdd(l, factor, term);
  }
  const auto first = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, d)), hn::Add(hn::Add(e, f), hn::Add(g, h)));
  *sink = hn::GetLane(hn::Add(first, hn::Add(hn::Add(i, j), hn::Add(k, l))));
  return 2.0 * 12 * static_cast<double>(steps * hn::Lanes(tag));
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::bench {

HWY_EXPORT(multiply_add_rounds);

double peak_gflops(size_t threads) {
  constexpr size_t kSteps = 1'000'000, kRuns = 10;
  const size_t before = base::num_threads();
  base::set_num_threads(threads);
  std::vector<float> sinks(threads * 16);
  std::vector<double> operations(threads);
  double best = 0;
  for (size_t run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    base::parallel_for(threads, [&](size_t unit) {
      operations[unit] = HWY_DYNAMIC_DISPATCH(multiply_add_rounds)(kSteps, &sinks[unit * 16]);
    });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    double sum = 0;
    for (double count : operations) sum += count;
    best = std::max(best, sum / seconds / 1e9);
  }
  base::set_num_threads(before);
  return best;
}

}  // namespace clearhead::bench
#endif
