// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace clearhead::base {

// Cores that control groups let this process use, 0 for no limit: the smallest quota of its own group and of every
// group above it, of version 2 (cpu.max: "150000 100000" is 1.5 cores, "max ..." no limit) or version 1
// (cpu.cfs_quota_us over cpu.cfs_period_us, -1 for no limit). mount is where the groups' files stand, groups the list
// of the groups that the process is in; in a container both show its own group at the root.
// Source: the Linux kernel's documentation of control groups, versions 1 and 2.
double cpu_quota(const std::filesystem::path& mount = "/sys/fs/cgroup",
                 const std::filesystem::path& groups = "/proc/self/cgroup");

}  // namespace clearhead::base
