// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <omp.h>

#include <cstddef>

namespace clearhead::base {

// Threads that this process may use: the affinity mask, limited by the control group's CPU quota (a container with
// a quota of one core on a machine of many gets 1).
size_t available_threads();

// Size of the one thread pool; available_threads() until set.
// Throws: set_num_threads throws Error (usage) unless 1 <= count <= kMaxThreads.
inline constexpr size_t kMaxThreads = 1024;
size_t num_threads();
void set_num_threads(size_t count);

// Index of the calling thread in the pool, below num_threads(); 0 outside parallel_for.
inline size_t thread_index() { return static_cast<size_t>(omp_get_thread_num()); }

// Calls body(unit) for every unit in [0, units), each once, in any order, on the pool. What a unit computes must not
// depend on who computes it. body must not throw. Inside another parallel_for the calling thread does all units.
template <class Body>
void parallel_for(size_t units, const Body& body) {
  if (units <= 1 || num_threads() == 1 || omp_in_parallel() != 0) {
    for (size_t unit = 0; unit < units; ++unit) body(unit);
    return;
  }
  const int team = static_cast<int>(num_threads() < units ? num_threads() : units);
#pragma omp parallel for schedule(dynamic, 1) num_threads(team)
  for (size_t unit = 0; unit < units; ++unit) body(unit);
}

}  // namespace clearhead::base
