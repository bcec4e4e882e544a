// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/target.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/error_text.h"

namespace clearhead::base {
namespace {

using tests::error_text;

TEST(Target, TheBestOneIsInUse) {
  const auto targets = simd_targets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(simd_target(), targets.front());
  EXPECT_EQ(std::set<std::string>(targets.begin(), targets.end()).size(), targets.size()) << "each is named once";
}

TEST(Target, EachCanBeForcedAndLifted) {
  const auto targets = simd_targets();
  for (const std::string& name : targets) {
    force_simd_target(name);
    EXPECT_EQ(simd_target(), name);
    EXPECT_EQ(simd_targets(), targets) << "what the machine has does not change";
  }
  force_simd_target("");
  EXPECT_EQ(simd_target(), targets.front());
}

TEST(Target, AnUnknownNameIsRefusedAndChangesNothing) {
  const std::string last = simd_targets().back();
  force_simd_target(last);
  const std::string text = error_text([] { force_simd_target("MMX\n"); });
  EXPECT_EQ(text.substr(0, 37), "usage: [SIMD target] expected one of ");
  EXPECT_NE(text.find(last), std::string::npos);
  EXPECT_NE(text.find("; found \"MMX\\x0a\""), std::string::npos) << text;
  EXPECT_EQ(simd_target(), last);
  force_simd_target("");
}

}  // namespace
}  // namespace clearhead::base
