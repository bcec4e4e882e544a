// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "tests/support/error_text.h"

namespace clearhead::base {
namespace {

using tests::error_text;

// Sets the size of the pool for the life of the object.
class Threads {
 public:
  explicit Threads(size_t count) : before_(num_threads()) { set_num_threads(count); }
  ~Threads() { set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  size_t before_;
};

TEST(Parallel, ThereIsAtLeastOneThread) {
  EXPECT_GE(available_threads(), 1u);
  EXPECT_LE(available_threads(), kMaxThreads);
  EXPECT_EQ(num_threads(), available_threads()) << "until somebody chooses";
}

TEST(Parallel, EachUnitOnceForEveryPool) {
  for (size_t count : {1, 2, 3, 8}) {
    const Threads threads(count);
    EXPECT_EQ(num_threads(), count);
    for (size_t units : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> calls(units);
      std::atomic<size_t> outside_pool{0};
      parallel_for(units, [&](size_t unit) {
        ++calls[unit];
        if (thread_index() >= count) ++outside_pool;
      });
      for (const auto& call : calls) ASSERT_EQ(call, 1) << count << " threads, " << units << " units";
      EXPECT_EQ(outside_pool, 0u);
    }
  }
}

// Both units wait until the other has begun: they can only end if two threads run them.
TEST(Parallel, UnitsReallyRunSideBySide) {
  const Threads threads(2);
  std::atomic<int> begun{0};
  parallel_for(2, [&](size_t) {
    ++begun;
    while (begun < 2) {
    }
  });
  EXPECT_EQ(begun, 2);
}

TEST(Parallel, WhatUnitsWroteIsSeenAfterwards) {
  const Threads threads(4);
  std::vector<int> values(10'000, 0);
  for (int round = 1; round <= 20; ++round) {
    parallel_for(values.size(), [&](size_t unit) { ++values[unit]; });
    for (int value : values) ASSERT_EQ(value, round);
  }
}

TEST(Parallel, InsideAnotherTheThreadKeepsItsIndex) {
  const Threads threads(2);
  std::atomic<int> strayed{0}, calls{0}, begun{0};
  parallel_for(2, [&](size_t) {
    const size_t outer = thread_index();
    ++begun;
    while (begun < 2) {
    }
    parallel_for(8, [&](size_t) {
      ++calls;
      if (thread_index() != outer) ++strayed;
    });
  });
  EXPECT_EQ(calls, 16);
  EXPECT_EQ(strayed, 0);
}

TEST(Parallel, IndexIsZeroOutside) { EXPECT_EQ(thread_index(), 0u); }

TEST(Parallel, NonsensicalCountsAreRefused) {
  const size_t before = num_threads();
  EXPECT_EQ(error_text([] { set_num_threads(0); }), "usage: [threads] expected a number from 1 to 1024; found 0");
  EXPECT_EQ(error_text([] { set_num_threads(1025); }), "usage: [threads] expected a number from 1 to 1024; found 1025");
  EXPECT_EQ(num_threads(), before);
}

}  // namespace
}  // namespace clearhead::base
