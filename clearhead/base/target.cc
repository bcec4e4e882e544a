// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/target.h"

#include <fmt/ranges.h>
#include <hwy/targets.h>

#include "clearhead/base/error.h"

namespace clearhead::base {
namespace {

// Targets in use are compiled in and supported; the lowest bit is the best.
int64_t usable_targets() { return hwy::SupportedTargets() & HWY_TARGETS; }

}  // namespace

std::string simd_target() {
  const int64_t usable = usable_targets();
  return hwy::TargetName(usable & -usable);
}

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (int64_t rest = usable_targets(); rest != 0; rest &= rest - 1) names.emplace_back(hwy::TargetName(rest & -rest));
  return names;
}

void force_simd_target(std::string_view name) {
  hwy::SetSupportedTargetsForTest(0);
  if (name.empty()) return;
  for (int64_t rest = usable_targets(); rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    if (name == hwy::TargetName(target)) return hwy::SetSupportedTargetsForTest(target);
  }
  refuse("SIMD target", fmt::format("one of {}", fmt::join(simd_targets(), ", ")), quoted(name));
}

}  // namespace clearhead::base
