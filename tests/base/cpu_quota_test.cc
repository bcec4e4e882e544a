// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/cpu_quota.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "clearhead/base/parallel.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::base {
namespace {

// A file system of control groups and the list of a process's own.
class Groups {
 public:
  void write(const std::string& path, std::string_view text) {
    std::filesystem::create_directories((folder_.path() / "mount" / path).parent_path());
    tests::write_bytes(folder_.path() / "mount" / path, text);
  }
  void is_in(std::string_view list) { tests::write_bytes(folder_ / "self", list); }
  double quota() const { return cpu_quota(folder_ / "mount", folder_ / "self"); }

 private:
  tests::TemporaryFolder folder_;
};

TEST(CpuQuota, OfAContainerStandsAtTheRootOfItsMount) {
  Groups groups;
  EXPECT_EQ(groups.quota(), 0.0);
  groups.write("cpu.max", "100000 100000\n");
  groups.is_in("0::/\n");
  EXPECT_EQ(groups.quota(), 1.0);
  groups.write("cpu.max", "150000 100000\n");
  EXPECT_EQ(groups.quota(), 1.5);
  for (const char* none : {"max 100000\n", "max", "", "100000 0\n", "none of it\n", "-1 100000\n"}) {
    groups.write("cpu.max", none);
    EXPECT_EQ(groups.quota(), 0.0) << none;
  }
}

TEST(CpuQuota, OfVersionOneStandsBesideItsPeriod) {
  Groups groups;
  groups.write("cpu/cpu.cfs_quota_us", "200000\n");
  groups.write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(groups.quota(), 2.0);
  groups.write("cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(groups.quota(), 0.0);
  groups.write("cpu/docker/1f/cpu.cfs_quota_us", "50000\n");
  groups.write("cpu/docker/1f/cpu.cfs_period_us", "100000\n");
  groups.is_in("9:memory:/docker/2\n4:cpu,cpuacct:/docker/1f\n");
  EXPECT_EQ(groups.quota(), 0.5);
}

TEST(CpuQuota, IsTheTightestOfTheOwnGroupAndAllAbove) {
  Groups groups;
  groups.is_in("0::/user.slice/job.service\n");
  groups.write("user.slice/cpu.max", "300000 100000\n");
  EXPECT_EQ(groups.quota(), 3.0);
  groups.write("user.slice/job.service/cpu.max", "max 100000\n");
  EXPECT_EQ(groups.quota(), 3.0);
  groups.write("user.slice/job.service/cpu.max", "200000 100000\n");
  EXPECT_EQ(groups.quota(), 2.0);
  groups.write("user.slice/cpu.max", "100000 100000\n");
  EXPECT_EQ(groups.quota(), 1.0);
}

TEST(CpuQuota, OfGroupsThatAreNoneIsNoLimit) {
  Groups groups;
  for (const char* list : {"", "\n", "0:\n", "::\n", "0::/../..\n", "0::/gone\n", "x:cpux,notcpu:/a\n"}) {
    groups.is_in(list);
    EXPECT_EQ(groups.quota(), 0.0) << list;
  }
}

TEST(CpuQuota, LimitsTheThreadsOfThisProcess) {
  const double quota = cpu_quota();
  if (quota > 0) {
    EXPECT_LE(static_cast<double>(available_threads()), std::max(1.0, quota + 1));
  }
  EXPECT_GE(available_threads(), 1u);
}

}  // namespace
}  // namespace clearhead::base
