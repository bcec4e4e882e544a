// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/terminal.h"

#include <gtest/gtest.h>

#include <array>

#include "clearhead/base/utf8.h"
#include "clearhead/views/ink_text.h"
#include "clearhead/views/wrap.h"

namespace clearhead::views {
namespace {

constexpr Style kUnicode{};
constexpr Style kAscii{.ascii = true};

TEST(DisplayWidth, CountsColumnsAsTerminalsDo) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("cat"), 3U);
  EXPECT_EQ(display_width("\u00e9"), 1U);   // e with acute, composed
  EXPECT_EQ(display_width("e\u0301"), 1U);  // and as two code points
  EXPECT_EQ(display_width("\u4e66"), 2U);   // Han
  EXPECT_EQ(display_width("\u56fe\u4e66\u9986"), 6U);
  EXPECT_EQ(display_width("\uac00"), 2U);              // Hangul syllable
  EXPECT_EQ(display_width("\u1100\u1161\u11a8"), 2U);  // the same kind of syllable as letters
  EXPECT_EQ(display_width("\uff71"), 1U);              // half-width katakana
  EXPECT_EQ(display_width("\uff21"), 2U);              // full-width A
  EXPECT_EQ(display_width("\u3002"), 2U);              // ideographic full stop
  EXPECT_EQ(display_width("\u0915\u093f"), 1U);        // Devanagari consonant with a vowel sign
}

TEST(DisplayWidth, TakesAnEmojiForOneCharacter) {
  EXPECT_EQ(display_width("\U0001F431"), 2U);
  EXPECT_EQ(display_width("\U0001F469\u200D\U0001F469\u200D\U0001F467"), 2U);  // a family, joined
  EXPECT_EQ(display_width("\U0001F44D\U0001F3FD"), 2U);                        // thumb with a skin colour
  EXPECT_EQ(display_width("\U0001F1E8\U0001F1F3"), 2U);                        // a flag of two letters
  EXPECT_EQ(display_width("\U0001F1E8\U0001F1F3\U0001F1EB\U0001F1F7"), 4U);    // two flags
  EXPECT_EQ(display_width("\u2764"), 1U);                                      // heart as text
  EXPECT_EQ(display_width("\u2764\uFE0F"), 2U);                                // heart as emoji
  EXPECT_EQ(display_width("1\uFE0F\u20E3"), 2U);                               // keycap
  EXPECT_EQ(display_width("\u4e66\uFE00"), 2U);                                // variation selector
  EXPECT_EQ(display_width("\U0001F3F4\U000E0067\U000E0062\U000E007F"), 2U);    // a flag with tags
}

TEST(Printable, LeavesOrdinaryTextAlone) {
  for (const char* text : {"cat", "\u00fcber", "\u56fe\u4e66\u9986", "\U0001F469\u200D\U0001F467", "##ing", "a b", "~"})
    EXPECT_EQ(printable(text, kUnicode), text);
}

TEST(Printable, DisarmsEveryControlCharacter) {
  EXPECT_EQ(printable("\x1b[31mred", kUnicode), "\u241b[31mred");
  EXPECT_EQ(printable("a\nb\tc\r", kUnicode), "a\u240ab\u2409c\u240d");
  EXPECT_EQ(printable(std::string_view("\0", 1), kUnicode), "\u2400");
  EXPECT_EQ(printable("\x7f", kUnicode), "\u2421");
  EXPECT_EQ(printable("\u009b31m", kUnicode), "\\u{9B}31m");  // the one-byte form of ESC [
  EXPECT_EQ(printable("\u2028\u2029\u0085", kUnicode), "\\u{2028}\\u{2029}\\u{85}");
  EXPECT_EQ(printable("\x1b\n", kAscii), "\\u{1B}\\u{A}");
}

TEST(Printable, DisarmsWhatReordersOrHides) {
  for (const char32_t value :
       std::to_array<char32_t>({0x061C, 0x200E, 0x200F, 0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068,
                                0x2069, 0x200B, 0x2060, 0xFEFF, 0x00AD, 0xE0041, 0xE000, 0xFFFF})) {
    std::string text = "a";
    base::append_utf8(text, value);
    const std::string shown = printable(text + "b", kUnicode);
    EXPECT_TRUE(shown.starts_with("a\\u{") && shown.ends_with("}b")) << shown;
  }
}

TEST(Printable, NoMarkReachesIntoWhatStandsBefore) {
  EXPECT_EQ(printable("\u0301a", kUnicode), "\u25cc\u0301a");
  EXPECT_EQ(printable(" \u0301", kUnicode), " \u25cc\u0301");
  EXPECT_EQ(printable("\u200D\U0001F467", kUnicode), "\\u{200D}\U0001F467");
  EXPECT_EQ(printable("\U0001F469\u200D", kUnicode), "\U0001F469");  // would join what is printed next
}

TEST(Printable, ReplacesInvalidUtf8) {
  EXPECT_EQ(printable("a\xff z", kUnicode), "a\uFFFD z");
  EXPECT_EQ(printable("\xe4\xb8", kUnicode), "\uFFFD");
  EXPECT_EQ(printable("\xff", kAscii), "\\u{FFFD}");
}

TEST(Printable, AsciiEscapesTheRest) {
  EXPECT_EQ(printable("caf\u00e9 \u4e66 \U0001F431", kAscii), "caf\\u{E9} \\u{4E66} \\u{1F431}");
}

TEST(Printable, AnyCodePointIsHarmlessAndStaysWhatItBecame) {
  for (char32_t value = 0; value <= 0x10FFFF; value += value < 0x3000 ? 1 : 13) {
    if (value >= 0xD800 && value <= 0xDFFF) continue;
    std::string text;
    base::append_utf8(text, value);
    for (const Style& style : {kUnicode, kAscii}) {
      const std::string shown = printable(text, style);
      ASSERT_EQ(printable(shown, style), shown) << static_cast<uint32_t>(value);
      for (const char c : shown) {
        ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F) << static_cast<uint32_t>(value);
        ASSERT_TRUE(!style.ascii || static_cast<unsigned char>(c) < 0x80);
      }
    }
  }
}

TEST(Clusters, CutsBetweenWhatReadersSee) {
  const std::string text = "e\u0301\u4e66\U0001F469\u200D\U0001F467x";
  std::vector<size_t> widths;
  std::string back;
  for (const Cluster& cluster : clusters(text)) {
    widths.push_back(cluster.width);
    back += cluster.text;
  }
  EXPECT_EQ(widths, (std::vector<size_t>{1, 2, 2, 1}));
  EXPECT_EQ(back, text);
}

TEST(Fit, FillsUpOrCutsToExactlyTheColumns) {
  EXPECT_EQ(fit("cat", 5, kUnicode), "cat  ");
  EXPECT_EQ(fit("cat", 3, kUnicode), "cat");
  EXPECT_EQ(fit("library", 5, kUnicode), "libr\u2026");
  EXPECT_EQ(fit("library", 5, kAscii), "lib..");
  EXPECT_EQ(fit("\u56fe\u4e66\u9986", 4, kUnicode), "\u56fe\u2026 ");  // half a character is never shown
  EXPECT_EQ(fit("library", 0, kUnicode), "");
  for (const char* text :
       {"", "cat", "\u56fe\u4e66\u9986", "\U0001F469\u200D\U0001F467\U0001F431", "a\x1b\xff", "e\u0301e\u0301"})
    for (size_t columns = 0; columns < 12; ++columns)
      for (const Style& style : {kUnicode, kAscii})
        EXPECT_EQ(display_width(fit(text, columns, style)), columns) << text;
}

TEST(InkText, KnowsItsColumnsBesideItsColours) {
  const Text text = Text("\u4e66", "1") + Text("ab");
  EXPECT_EQ(text.width(), 4U);
  EXPECT_EQ(text.str(), "\x1b[1m\u4e66\x1b[0mab");
  EXPECT_EQ(text.padded(6).str(), "\x1b[1m\u4e66\x1b[0mab  ");
  EXPECT_EQ(text.right_aligned(6).str(), "  \x1b[1m\u4e66\x1b[0mab");
}

TEST(InkText, CutClosesEveryColour) {
  const Text text = Text("library", "1") + Text("cat", "2");
  EXPECT_EQ(text.cut(10, kUnicode).str(), text.str());
  EXPECT_EQ(text.cut(9, kUnicode).str(), "\x1b[1mlibrary\x1b[0m\x1b[2mc\u2026\x1b[0m");
  EXPECT_EQ(text.cut(7, kUnicode).str(), "\x1b[1mlibrar\u2026\x1b[0m");
  for (size_t columns = 0; columns <= 10; ++columns)
    for (const Style& style : {kUnicode, kAscii}) EXPECT_EQ(text.cut(columns, style).width(), columns);
}

TEST(InkText, FillsInNames) {
  EXPECT_EQ(fill_in("{a} and {b}", {{"a", Text("x", "1")}, {"b", Text("y")}}).str(), "\x1b[1mx\x1b[0m and y");
  EXPECT_EQ(fill_in("{c}|{", {{"a", Text("x")}}).str(), "{c}|{");
}

}  // namespace
}  // namespace clearhead::views
