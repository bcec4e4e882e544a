// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/interrupt.h"

#include <atomic>

namespace clearhead::base {
namespace {

std::atomic<bool> requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

}  // namespace

void request_interrupt() noexcept { requested.store(true, std::memory_order_relaxed); }

void check_interrupt() {
  if (requested.load(std::memory_order_relaxed)) throw Interrupted{};
}

}  // namespace clearhead::base
