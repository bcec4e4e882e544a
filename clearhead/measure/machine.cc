// SPDX-License-Identifier: Apache-2.0
#include "clearhead/measure/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "clearhead/base/parallel.h"
#include "clearhead/base/target.h"
#include "clearhead/base/version.h"
#include "clearhead/measure/bf16_rounds.h"

namespace clearhead::measure {
namespace {

// The first line "model name : ..." of /proc/cpuinfo, with family and model, which tell more where the name hides them.
std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string name, family, model;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const size_t colon = line.find(':'), end = line.find_last_not_of(" \t", colon == 0 ? 0 : colon - 1);
    if (colon == std::string::npos || colon + 2 > line.size()) continue;
    const std::string key = line.substr(0, end + 1), value = line.substr(colon + 2);
    if (key == "model name") name = value;
    if (key == "cpu family") family = value;
    if (key == "model") model = value;
  }
  if (name.empty()) return "unknown";
  return family.empty() ? name : fmt::format("{} (family {}, model {})", name, family, model);
}

std::string features() {
  const auto targets = base::simd_targets();
  const std::string best = targets.empty() ? "" : targets.front();
  if (!best.starts_with("AVX3")) return best;
  return has_bf16_products() ? "AVX-512 with BF16" : "AVX-512";
}

size_t memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(size) : 0;
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

Machine describe_machine() {
  return {cpu_name(),          features(), base::available_threads(),  memory_bytes(),
          base::simd_target(), compiler(), std::string(base::kVersion)};
}

}  // namespace clearhead::measure
