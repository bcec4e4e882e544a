// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/short_waits.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace clearhead::apps {

void start_with_short_waits(char** argv) {
  constexpr const char* kSpins = "1000";
  for (const char* setting : {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}) {
    if (std::getenv(setting) != nullptr) return;
  }
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || ::setenv("GOMP_SPINCOUNT", kSpins, 1) != 0) return;
  ::execv(program.c_str(), argv);  // comes back only if it cannot; then waits stay long
}

}  // namespace clearhead::apps
