// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/parallel.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "clearhead/base/cpu_quota.h"
#include "clearhead/base/error.h"

namespace clearhead::base {
namespace {

std::atomic<size_t> chosen{0};  // 0: nobody has chosen

size_t affinity_count() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return static_cast<size_t>(std::max(1, omp_get_num_procs()));
  return static_cast<size_t>(std::max(1, CPU_COUNT(&mask)));
}

}  // namespace

size_t available_threads() {
  const double quota = cpu_quota();
  const size_t cores = std::min(affinity_count(), kMaxThreads);
  if (quota <= 0) return cores;
  return static_cast<size_t>(std::clamp(std::ceil(quota), 1.0, static_cast<double>(cores)));
}

size_t num_threads() {
  size_t count = chosen.load(std::memory_order_relaxed);
  if (count == 0) {
    count = available_threads();
    chosen.store(count, std::memory_order_relaxed);
  }
  return count;
}

void set_num_threads(size_t count) {
  if (count < 1 || count > kMaxThreads) {
    refuse("threads", fmt::format("a number from 1 to {}", kMaxThreads), fmt::format("{}", count));
  }
  chosen.store(count, std::memory_order_relaxed);
}

}  // namespace clearhead::base
