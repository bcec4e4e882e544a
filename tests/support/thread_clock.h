// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <stdexcept>

namespace clearhead::tests {

// Processor time of this thread since it was made. Others who are busy on the same machine hardly count, so that a
// bound on it can be near to what is needed.
class ThreadClock {
 public:
  ThreadClock() : start_(now()) {}
  double seconds() const { return now() - start_; }

 private:
  static double now() {
    timespec time{};
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) throw std::runtime_error("no clock of the thread");
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  double start_;
};

// How many times as long a build may take: one without optimisation or with a sanitizer, in which every access to
// memory is checked.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr double kSlower = 20;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr double kSlower = 20;
#else
constexpr double kSlower = 1;
#endif
#else
constexpr double kSlower = 1;
#endif

}  // namespace clearhead::tests
