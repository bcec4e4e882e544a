// SPDX-License-Identifier: Apache-2.0
// One-pass attention at the shapes of small encoders and decoders, as share of the peak of the same run, on every SIMD
// target with fused multiply-add: alone, with the statistics of rows (entropy, distance, strongest key, three small
// groups), and with all of them (the eight strongest keys, a group of many keys and a map of 64 x 64 cells as well), in
// turns. The answer is compared with the exact path before the clock starts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "bench/peak.h"
#include "clearhead/attention/fused.h"
#include "clearhead/base/parallel.h"
#include "clearhead/base/target.h"

namespace {

using namespace clearhead;

struct Case {
  const char* name;
  size_t batch, num_heads, num_kv_heads, query_len, key_len, head_dim;
  bool causal;
};

constexpr Case kCases[] = {
    {"1x8 64 64", 1, 8, 8, 64, 64, 64, false},
    {"1x12 128 32", 1, 12, 12, 128, 128, 32, false},
    {"1x12 512 32", 1, 12, 12, 512, 512, 32, false},
    {"1x9/3 512 64 causal", 1, 9, 3, 512, 512, 64, true},
    {"1x9/3 2048 64 causal", 1, 9, 3, 2048, 2048, 64, true},
    {"1x9/3 8192 64 causal", 1, 9, 3, 8192, 8192, 64, true},
    {"1x9/3 2048 64", 1, 9, 3, 2048, 2048, 64, false},
    {"32x12 128 32", 32, 12, 12, 128, 128, 32, false},
    {"1x9/3 1 of 4096 64", 1, 9, 3, 1, 4096, 64, false},
};

std::vector<float> normal_values(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

// The best of many runs of each, in turns.
template <size_t kCount, class Run>
std::array<double, kCount> best_seconds(const Run& run) {
  std::array<double, kCount> best;
  best.fill(1e9);
  double spent = 0;
  for (size_t rounds = 0; rounds < 5 || (spent < 0.5 * kCount && rounds < 2000); ++rounds) {
    for (size_t which = 0; which < kCount; ++which) {
      const auto start = std::chrono::steady_clock::now();
      run(which);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      best[which] = std::min(best[which], seconds);
      spent += seconds;
    }
  }
  return best;
}

attention::RowStatistics all_statistics(size_t key_len) {
  attention::RowStatistics all;
  std::vector<size_t> many;
  for (size_t key = 0; key < key_len; key += 5) many.push_back(key);
  all.groups = {{.distance = 0}, {.distance = -1}, {.distance = 1}, {.keys = {{0, key_len - 1}}}, {.keys = {many}}};
  all.top = 8;
  all.overview = attention::OverviewBins{64, 64};
  return all;
}

// Runs one case; prints its best time.
bool run(const Case& c, const std::string& target, double peak) {
  attention::AttentionConfig config;
  config.num_heads = c.num_heads;
  config.num_kv_heads = c.num_kv_heads;
  config.head_dim = config.value_dim = c.head_dim;
  config.causal = c.causal ? attention::Causal::top_left : attention::Causal::none;
  const size_t queries = c.batch * c.query_len * c.num_heads, keys = c.batch * c.key_len * c.num_kv_heads;
  const auto query = normal_values(queries * c.head_dim, 1), key = normal_values(keys * c.head_dim, 2);
  const auto value = normal_values(keys * c.head_dim, 3);
  const attention::AttentionInput input{c.batch, c.query_len, c.key_len, query, key, value, {}};
  std::vector<float> output(queries * c.head_dim), reference(queries), sum(queries);
  attention::FusedAttention fused;
  fused.run(config, input, {output, reference, sum});
  const auto want = attention::exact_attention(config, input);
  if (!std::ranges::equal(output, want.head_output.as<float>())) {
    fmt::print("{:8} {:22} wrong answer\n", target, c.name);
    return false;
  }
  const attention::AttentionSpans spans{output, reference, sum};
  attention::RowStatistics small, all = all_statistics(c.key_len);
  small.groups = {{.distance = 0}, {.distance = -1}, {.distance = 1}};
  attention::RowStatistics* const watched[] = {nullptr, &small, &all};
  const auto [plain, with_small, with_all] =
      best_seconds<3>([&](size_t which) { fused.run(config, input, spans, watched[which]); });
  const double operations = 4.0 * double(queries) * double(c.key_len * c.head_dim) * (c.causal ? 0.5 : 1.0);
  fmt::print(
      "{:8} {:22} {:10.1f} us {:8.1f} GFLOP/s {:6.1f} % of peak; with statistics of rows {:+5.1f} % time, with all "
      "{:+5.1f} %\n",
      target, c.name, plain * 1e6, operations / plain / 1e9, operations / plain / 1e7 / peak,
      100 * (with_small / plain - 1), 100 * (with_all / plain - 1));
  return true;
}

}  // namespace

// attention_bench [THREADS]
int main(int argc, char** argv) {
  if (argc > 1) base::set_num_threads(std::strtoul(argv[1], nullptr, 10));
  bool right = true;
  for (const std::string& target : base::simd_targets()) {
    if (target != "AVX2" && target != "AVX3" && target != "AVX3_DL" && target != "NEON") continue;
    base::force_simd_target(target);
    const double peak = bench::peak_gflops(base::num_threads());
    fmt::print("{:8} {} threads, fused multiply-add {:.1f} GFLOP/s\n", target, base::num_threads(), peak);
    for (const Case& c : kCases)
      right = run(c, target, std::max(peak, bench::peak_gflops(base::num_threads()))) && right;
    base::force_simd_target("");
  }
  return right ? 0 : 1;
}
