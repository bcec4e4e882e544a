// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/target.h"

#include <fmt/ranges.h>
#include <hwy/targets.h>

#include "clearhead/base/error.h"

namespace clearhead::base {
namespace {

// Targets that are compiled in and supported here; the lowest bit is the best. Asked once, before any restriction.
int64_t all_targets() {
  static const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets;
}

}  // namespace

std::string simd_target() {
  all_targets();
  const int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(usable & -usable);
}

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (int64_t rest = all_targets(); rest != 0; rest &= rest - 1) names.emplace_back(hwy::TargetName(rest & -rest));
  return names;
}

void force_simd_target(std::string_view name) {
  int64_t rest = all_targets();
  if (name.empty()) return hwy::SetSupportedTargetsForTest(0);
  for (; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    if (name == hwy::TargetName(target)) return hwy::SetSupportedTargetsForTest(target);
  }
  refuse("SIMD target", fmt::format("one of {}", fmt::join(simd_targets(), ", ")), quoted(name));
}

}  // namespace clearhead::base
