// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace clearhead::base {

// Thrown where work is given up because the user asked for it; programs answer with exit code 130.
struct Interrupted {};

// Asks the running work to stop. Safe to call from a signal handler.
void request_interrupt() noexcept;

// Throws: Interrupted if somebody asked. Called between layers, texts and files, never inside a kernel.
void check_interrupt();

}  // namespace clearhead::base
