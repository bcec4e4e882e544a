// SPDX-License-Identifier: Apache-2.0
#include "clearhead/base/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace clearhead::base {
namespace {

using namespace std::string_view_literals;

bool is_scalar(char32_t value) { return value < 0xd800 || (value > 0xdfff && value <= 0x10ffff); }

size_t bytes_of(char32_t value) { return value < 0x80 ? 1 : value < 0x800 ? 2 : value < 0x10000 ? 3 : 4; }

// The definition, written the other way round from the decoder: the bits of a sequence as its lead byte announces them,
// or nothing unless the result is a scalar value in its shortest form.
std::optional<char32_t> decode_by_definition(std::string_view text) {
  const auto byte = [&](size_t i) { return char32_t(static_cast<unsigned char>(text[i])); };
  const size_t length = byte(0) < 0x80           ? 1
                        : (byte(0) >> 5) == 0x06 ? 2
                        : (byte(0) >> 4) == 0x0e ? 3
                        : (byte(0) >> 3) == 0x1e ? 4
                                                 : 0;
  if (length == 0 || text.size() < length) return std::nullopt;
  char32_t value = length == 1 ? byte(0) : byte(0) & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) >> 6) != 2) return std::nullopt;
    value = (value << 6) | (byte(i) & 0x3f);
  }
  if (!is_scalar(value) || bytes_of(value) != length) return std::nullopt;
  return value;
}

TEST(Utf8, EveryScalarValueComesBack) {
  for (char32_t value = 0; value <= 0x10ffff; ++value) {
    if (!is_scalar(value)) continue;
    std::string text;
    append_utf8(text, value);
    ASSERT_EQ(text.size(), bytes_of(value)) << std::hex << uint32_t(value);
    const CodePoint read = decode_utf8(text + "x");
    ASSERT_TRUE(read.valid) << std::hex << uint32_t(value);
    ASSERT_EQ(read.value, value);
    ASSERT_EQ(read.length, text.size());
  }
}

TEST(Utf8, EveryPairOfBytesWithTailsAgreesWithTheDefinition) {
  for (const std::string_view tail : {""sv, "\x80"sv, "\x80\x80"sv, "\xbf\xbf"sv, "\x80z"sv, "zz"sv, "\xc0\x80"sv}) {
    for (int first = 0; first < 256; ++first) {
      for (int second = 0; second < 256; ++second) {
        const std::string text = std::string{char(first), char(second)} + std::string(tail);
        const CodePoint read = decode_utf8(text);
        const auto truth = decode_by_definition(text);
        ASSERT_EQ(read.valid, truth.has_value()) << first << " " << second;
        ASSERT_EQ(read.value, truth.value_or(0xfffd)) << first << " " << second;
      }
    }
  }
}

// Lengths of invalid sequences as the Unicode Standard recommends (section 3.9, tables 3-8 to 3-11).
TEST(Utf8, InvalidSequencesAreCutAfterTheirValidPrefix) {
  struct Case {
    std::string_view text;
    size_t length;
  };
  const Case cases[] = {
      {"\x80"sv, 1},
      {"\xbf"sv, 1},
      {"\xc0\xaf"sv, 1},
      {"\xc1\xbf"sv, 1},
      {"\xc2"sv, 1},
      {"\xc2z"sv, 1},
      {"\xe0\x80\xbf"sv, 1},
      {"\xe0\x9f\x80"sv, 1},
      {"\xe0\xa0"sv, 2},
      {"\xe0\xa0z"sv, 2},
      {"\xe1\x80"sv, 2},
      {"\xed\xa0\x80"sv, 1},
      {"\xed\xbf\xbf"sv, 1},
      {"\xed\x9f"sv, 2},
      {"\xef\xbf"sv, 2},
      {"\xf0\x8f\xbf\xbf"sv, 1},
      {"\xf0\x90"sv, 2},
      {"\xf0\x90\x80"sv, 3},
      {"\xf0\x90z"sv, 2},
      {"\xf0\x90\x80z"sv, 3},
      {"\xf4\x90\x80\x80"sv, 1},
      {"\xf4\x8f\xbf"sv, 3},
      {"\xf5\x80\x80\x80"sv, 1},
      {"\xf8\x88\x80\x80\x80"sv, 1},
      {"\xfe"sv, 1},
      {"\xff"sv, 1},
  };
  for (const Case& item : cases) {
    const CodePoint read = decode_utf8(item.text);
    EXPECT_FALSE(read.valid) << testing::PrintToString(item.text);
    EXPECT_EQ(read.value, char32_t(0xfffd)) << testing::PrintToString(item.text);
    EXPECT_EQ(read.length, item.length) << testing::PrintToString(item.text);
  }
}

TEST(Utf8, ValidBoundaries) {
  struct Case {
    std::string_view text;
    char32_t value;
  };
  const Case cases[] = {{"\0"sv, 0},
                        {"\x7f"sv, 0x7f},
                        {"\xc2\x80"sv, 0x80},
                        {"\xdf\xbf"sv, 0x7ff},
                        {"\xe0\xa0\x80"sv, 0x800},
                        {"\xed\x9f\xbf"sv, 0xd7ff},
                        {"\xee\x80\x80"sv, 0xe000},
                        {"\xef\xbf\xbf"sv, 0xffff},
                        {"\xf0\x90\x80\x80"sv, 0x10000},
                        {"\xf4\x8f\xbf\xbf"sv, 0x10ffff}};
  for (const Case& item : cases) {
    const CodePoint read = decode_utf8(item.text);
    EXPECT_TRUE(read.valid);
    EXPECT_EQ(read.value, item.value);
    EXPECT_EQ(read.length, item.text.size());
    std::string written;
    append_utf8(written, item.value);
    EXPECT_EQ(written, item.text);
  }
}

// All texts of up to five of the bytes that differ in what may follow them.
TEST(Utf8, TheLastSequenceIsThatOfReadingFromTheFront) {
  const std::string bytes = "a\x80\x90\xa0\xbf\xc1\xc2\xe0\xe4\xed\xf0\xf1\xf4\xf5";
  std::vector<std::string> texts = {""};
  for (size_t i = 0; texts[i].size() < 5; ++i) {
    for (const char byte : bytes) {
      const std::string text = texts[i] + byte;
      size_t last = 0;
      for (size_t at = 0; at < text.size(); at += last) last = decode_utf8(std::string_view(text).substr(at)).length;
      ASSERT_EQ(last_utf8_length(text), last) << testing::PrintToString(text);
      texts.push_back(text);
    }
  }
}

TEST(Utf8, FirstInvalidNamesTheByte) {
  EXPECT_EQ(first_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("cat \xe7\x8c\xab \xf0\x9f\x90\x88"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("\xffok"), 0u);
  EXPECT_EQ(first_invalid_utf8("ok\xed\xa0\x80"), 2u);
  EXPECT_EQ(first_invalid_utf8("\xe7\x8c\xab\xe7\x8c"), 3u);
}

}  // namespace
}  // namespace clearhead::base
