// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace clearhead::base {
namespace {

void on_signal(int) { request_interrupt(); }

// In a process of its own: a request stays for good.
void interrupt_by_signal() {
  check_interrupt();
  ::signal(SIGINT, on_signal);
  ::raise(SIGINT);
  for (int asked = 0; asked < 2; ++asked) {
    try {
      check_interrupt();
      ::_exit(1);
    } catch (const Interrupted&) {
    }
  }
  ::_exit(42);
}

TEST(Interrupt, NothingHappensUntilAsked) { EXPECT_NO_THROW(check_interrupt()); }

TEST(Interrupt, ASignalStopsTheWorkForGood) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(interrupt_by_signal(), testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace clearhead::base
