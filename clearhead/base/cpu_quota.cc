// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/cpu_quota.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace clearhead::base {
namespace {

double quota_version_2(const std::filesystem::path& group) {
  std::ifstream file(group / "cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  return std::max(0.0, std::strtod(quota.c_str(), nullptr) / period);
}

double quota_version_1(const std::filesystem::path& group) {
  std::ifstream quota_file(group / "cpu.cfs_quota_us"), period_file(group / "cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0) return 0;
  return quota / period;
}

// The smaller of two limits, 0 for none.
double tighter(double a, double b) { return a <= 0 ? b : b <= 0 ? a : std::min(a, b); }

// The limit of a group below root, and of all groups above it. Groups may have ".." in them where a process was moved
// out of its namespace; what they name is not looked at then.
template <class Quota>
double tightest(const std::filesystem::path& root, std::string_view group, const Quota& quota) {
  double limit = quota(root);
  std::filesystem::path path = root;
  for (const std::filesystem::path& part : std::filesystem::path(group).relative_path()) {
    if (part == "..") return limit;
    path /= part;
    limit = tighter(limit, quota(path));
  }
  return limit;
}

bool names_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == "cpu") return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

}  // namespace

double cpu_quota(const std::filesystem::path& mount, const std::filesystem::path& groups) {
  double limit = tighter(quota_version_2(mount), quota_version_1(mount / "cpu"));
  std::ifstream file(groups);
  std::string line;  // "0::/user.slice" of version 2, "4:cpu,cpuacct:/docker/1f" of version 1
  while (std::getline(file, line)) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view all = line, group = all.substr(second + 1);
    const std::string_view controllers = all.substr(first + 1, second - first - 1);
    if (controllers.empty()) limit = tighter(limit, tightest(mount, group, quota_version_2));
    if (names_cpu(controllers)) limit = tighter(limit, tightest(mount / "cpu", group, quota_version_1));
  }
  return limit;
}

}  // namespace clearhead::base
