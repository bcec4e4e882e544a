// SPDX-License-Identifier: Apache-2.0
#include "clearhead/measure/peak.h"

#include <algorithm>
#include <array>
#include <vector>

#include "clearhead/base/parallel.h"
#include "clearhead/measure/bf16_rounds.h"
#include "clearhead/measure/clock.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clearhead/measure/peak.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace clearhead::measure {
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

// 2^x by the nearest whole number, a polynomial on [-1/2, 1/2], and that number put into the exponent: the least that
// an exponential costs, its reference subtracted. In place, so that no round can be left out. Returns the number of
// powers.
double exp2_rounds(size_t steps, float* sink) {
  const hn::CappedTag<float, 16> tag;
  const hn::RebindToSigned<decltype(tag)> integers;
  constexpr size_t kCount = 2048;
  HWY_ALIGN std::array<float, kCount> values;
  for (size_t i = 0; i < kCount; ++i) values[i] = -0.01f * static_cast<float>(i % 1024);
  const auto reference = hn::Set(tag, 1.0f);  // 2^(x - 1) again and again comes to 1 from below
  for (size_t step = 0; step < steps; ++step) {
    for (size_t i = 0; i < kCount; i += hn::Lanes(tag)) {
      const auto x = hn::Sub(hn::Load(tag, values.data() + i), reference), whole = hn::Round(x);
      const auto rest = hn::Sub(x, whole);
      auto power = hn::Set(tag, 1.3276472e-3f);
      power = hn::MulAdd(power, rest, hn::Set(tag, 9.6755413e-3f));
      power = hn::MulAdd(power, rest, hn::Set(tag, 5.5507133e-2f));
      power = hn::MulAdd(power, rest, hn::Set(tag, 2.4022120e-1f));
      power = hn::MulAdd(power, rest, hn::Set(tag, 6.9314697e-1f));
      power = hn::MulAdd(power, rest, hn::Set(tag, 1.0f));
      const auto exponent = hn::ShiftLeft<23>(hn::ConvertTo(integers, whole));
      hn::Store(hn::BitCast(tag, hn::Add(hn::BitCast(integers, power), exponent)), tag, values.data() + i);
    }
  }
  *sink = values[0];
  return static_cast<double>(steps * kCount);
}

}  // namespace HWY_NAMESPACE
}  // namespace clearhead::measure
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clearhead::measure {

HWY_EXPORT(multiply_add_rounds);
HWY_EXPORT(exp2_rounds);

namespace {

// The best rate of several runs in which every thread does rounds(steps) once. Units: 10^9 a second.
template <class Rounds>
double best_rate(size_t threads, size_t steps, const Rounds& rounds) {
  constexpr size_t kRuns = 5, kApart = 16;  // the threads' results in cache lines of their own
  const size_t before = base::num_threads();
  base::set_num_threads(threads);
  std::vector<float> sinks(threads * kApart);
  std::vector<double> operations(threads);
  double best = 0;
  for (size_t run = 0; run < kRuns; ++run) {
    const double seconds = seconds_of([&] {
      base::parallel_for(threads, [&](size_t unit) { operations[unit] = rounds(steps, &sinks[unit * kApart]); });
    });
    double sum = 0;
    for (double count : operations) sum += count;
    best = std::max(best, sum / seconds / 1e9);
  }
  base::set_num_threads(before);
  return best;
}

}  // namespace

double multiply_add_peak(size_t threads) {
  return best_rate(threads, 500'000,
                   [](size_t steps, float* sink) { return HWY_DYNAMIC_DISPATCH(multiply_add_rounds)(steps, sink); });
}

double exp2_peak(size_t threads) {
  return best_rate(threads, 5'000,
                   [](size_t steps, float* sink) { return HWY_DYNAMIC_DISPATCH(exp2_rounds)(steps, sink); });
}

std::optional<double> bf16_peak(size_t threads) {
  if (!has_bf16_products()) return std::nullopt;
  return best_rate(threads, 400'000, bf16_product_rounds);
}

Peak measure_peak(size_t threads) { return {multiply_add_peak(threads), exp2_peak(threads), bf16_peak(threads)}; }

double attention_limit(const Peak& peak, size_t head_dim) {
  const double products = 4 * double(head_dim) / peak.multiply_add_gflops;
  return products / (products + 1 / peak.exp2_giga);
}

}  // namespace clearhead::measure
#endif
