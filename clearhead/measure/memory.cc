// SPDX-License-Identifier: Apache-2.0
#include "clearhead/measure/memory.h"

#include <malloc.h>

#include <fstream>
#include <string>

namespace clearhead::measure {
namespace {

// A line of /proc/self/status ("VmRSS:     1234 kB") in bytes.
std::optional<size_t> status_bytes(const std::string& name) {
  std::ifstream file("/proc/self/status");
  std::string word;
  size_t kilobytes = 0;
  while (file >> word) {
    if (word == name && file >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

}  // namespace

std::optional<size_t> growth_during(const std::function<void()>& work) {
  ::malloc_trim(0);  // free memory that the process keeps would be used first, unseen
  std::ofstream("/proc/self/clear_refs") << "5" << std::flush;  // the height so far is what is in use now
  const auto before = status_bytes("VmRSS:");
  work();
  const auto height = status_bytes("VmHWM:");
  if (!before || !height) return std::nullopt;
  return *height > *before ? *height - *before : 0;
}

}  // namespace clearhead::measure
