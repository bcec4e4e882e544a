// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/error.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/support/error_text.h"

namespace clearhead::base {
namespace {

using namespace std::string_view_literals;
using tests::error_text;

TEST(Error, SaysWhereExpectedFoundAndAdvice) {
  EXPECT_EQ(error_text([] { fail("config", "12 heads", "0"); }), "[config] expected 12 heads; found 0");
  EXPECT_EQ(error_text([] { fail("config", "12 heads", "0", "count again"); }),
            "[config] expected 12 heads; found 0; count again");
}

TEST(Error, RefusalIsAFaultOfTheCall) {
  EXPECT_EQ(error_text([] { refuse("--head", "0 to 11", "12"); }), "usage: [--head] expected 0 to 11; found 12");
}

TEST(Error, BracesInForeignTextsAreNoFormat) {
  EXPECT_EQ(error_text([] { fail("{}", "{0}", "{1:>99}", "}{"); }), "[{}] expected {0}; found {1:>99}; }{");
}

TEST(Quoted, PlainTextStays) {
  EXPECT_EQ(quoted(""), "\"\"");
  EXPECT_EQ(quoted("the cat"), "\"the cat\"");
  EXPECT_EQ(quoted("\xe7\x8c\xab \xf0\x9f\x90\x88"), "\"\xe7\x8c\xab \xf0\x9f\x90\x88\"");
}

TEST(Quoted, NothingReachesTheTerminalRaw) {
  EXPECT_EQ(quoted("a\nb\tc"), "\"a\\x0ab\\x09c\"");
  EXPECT_EQ(quoted("\x1b[31mred"), "\"\\x1b[31mred\"");
  EXPECT_EQ(quoted("\0\x7f"sv), "\"\\x00\\x7f\"");
  EXPECT_EQ(quoted("\xc2\x9b"), "\"\\xc2\\x9b\"") << "a control character of the C1 block";
  EXPECT_EQ(quoted("\xff\xe7\x8c"), "\"\\xff\\xe7\\x8c\"") << "invalid UTF-8";
  EXPECT_EQ(quoted("\xe2\x80\xa8"), "\"\\xe2\\x80\\xa8\"") << "line separator";
  EXPECT_EQ(quoted("\xe2\x80\xae"), "\"\\xe2\\x80\\xae\"") << "right-to-left override";
  EXPECT_EQ(quoted("\xe2\x81\xa6"), "\"\\xe2\\x81\\xa6\"") << "left-to-right isolate";
}

TEST(Quoted, LongTextIsCutBetweenCodePoints) {
  EXPECT_EQ(quoted("abcdef", 3), "\"abc...\"");
  EXPECT_EQ(quoted("abc", 3), "\"abc\"");
  EXPECT_EQ(quoted("\xe7\x8c\xab\xe7\x8c\xab", 2), "\"\xe7\x8c\xab...\"");
  EXPECT_EQ(base::quoted(std::string(1000, 'x')).size(), 80 + 5u);
}

}  // namespace
}  // namespace clearhead::base
