// SPDX-License-Identifier: Apache-2.0
// SentencePiece's precompiled maps: what is foreign in them, and grapheme clusters. Against the tokenizers library:
// component_golden_test.cc.
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "clearhead/text/base64.h"
#include "clearhead/text/grapheme.h"
#include "clearhead/text/precompiled.h"
#include "tests/support/error_text.h"
#include "tests/support/thread_clock.h"

namespace clearhead::text {
namespace {

using clearhead::tests::error_text;

constexpr uint32_t kValue = uint32_t{1} << 31, kHasValue = 1 << 8;

std::string bytes_of(const std::vector<uint32_t>& numbers) {
  std::string result;
  for (const uint32_t number : numbers) {
    for (int shift = 0; shift < 32; shift += 8) result += static_cast<char>(number >> shift & 0xff);
  }
  return result;
}

// The map whose one string is "a": the root's children begin at unit 256, those of "a" at 512.
std::vector<uint32_t> units_of_a(uint32_t value) {
  std::vector<uint32_t> units(768);
  units[0] = 256 << 10;
  units[256 ^ 'a'] = ((256 ^ 'a') ^ 512) << 10 | kHasValue | 'a';
  units[512] = kValue | value;
  return units;
}

std::string map_of(const std::vector<uint32_t>& units, std::string_view texts) {
  return bytes_of({static_cast<uint32_t>(4 * units.size())}) + bytes_of(units) + std::string(texts);
}

std::string normalized(const Precompiled& map, std::string_view text) {
  AlignedText result;
  map.normalize(AlignedText(text, 0), result);
  return std::string(result.bytes());
}

TEST(Precompiled, BecomesWhatTheMapSays) {
  using namespace std::string_view_literals;
  const Precompiled map(map_of(units_of_a(2), "x\0yz\0w\0"sv), "map");
  EXPECT_EQ(normalized(map, "abba"), "yzbbyz");
  EXPECT_EQ(normalized(map, "a\u0301b\u0301"), "yzb\u0301") << "a short cluster that begins with a string of the map";
  EXPECT_EQ(normalized(map, "a\u0301\u0301\u0301"), "yz\u0301\u0301\u0301") << "a longer one";
  EXPECT_EQ(normalized(map, std::string_view("a\0a", 3)), std::string_view("yz\0yz", 5));
  EXPECT_EQ(normalized(map, ""), "");
  EXPECT_EQ(normalized(Precompiled(map_of(units_of_a(0), "yz"), "map"), "ab"), "yzb") << "no NUL behind the last text";
}

TEST(Precompiled, WhatIsGoneMovesWhereThingsCameFrom) {
  const Precompiled map(map_of(units_of_a(0), std::string(1, '\0')), "map");
  AlignedText result;
  map.normalize(AlignedText("bac", 0), result);
  EXPECT_EQ(result.bytes(), "bc");
  EXPECT_EQ(result.original({1, 2}).begin, 2u);
  result = {};
  map.normalize(AlignedText("abc", 0), result);
  EXPECT_EQ(result.bytes(), "bc");
  EXPECT_EQ(result.original({0, 1}).begin, 0u) << "as in the library: at the beginning nothing stands for what is gone";
}

TEST(Precompiled, WhatItIsRefusedFor) {
  const auto error_of = [](const std::string& map) { return error_text([&] { Precompiled(map, "map"); }); };
  EXPECT_EQ(error_of(""),
            "[map] expected a map that begins with the size of its double array; found size 0 in 0 bytes");
  EXPECT_EQ(error_of(std::string(4, '\0')),
            "[map] expected a map that begins with the size of its double array; found size 0 in 4 bytes");
  EXPECT_EQ(error_of(bytes_of({8, 0})),
            "[map] expected a map that begins with the size of its double array; found size 8 in 8 bytes");
  EXPECT_EQ(error_of(bytes_of({0xfffffffc, 0})),
            "[map] expected a map that begins with the size of its double array; found size 4294967292 in 8 bytes");
  EXPECT_EQ(error_of(bytes_of({5, 0, 0})),
            "[map] expected a map that begins with the size of its double array; found size 5 in 12 bytes");
  EXPECT_EQ(error_of(map_of(units_of_a(0), "y\xff")),
            "[map] expected texts of valid UTF-8; found another byte at 1 of them");
  const std::string elsewhere =
      "[map] expected texts at the beginning of a character of the map; found unit 353 of 768, which points elsewhere";
  EXPECT_EQ(error_of(map_of(units_of_a(2), "yz")), elsewhere);
  EXPECT_EQ(error_of(map_of(units_of_a(1), "\u00e9")), elsewhere);
  std::vector<uint32_t> units = units_of_a(0);
  units[256 ^ 'a'] |= 0x1fffff << 10;
  EXPECT_EQ(error_of(map_of(units, "y")), elsewhere);
  const std::string longest(Precompiled::kLongestText, 'y');
  EXPECT_EQ(normalized(Precompiled(map_of(units_of_a(0), longest), "map"), "a"), longest);
  EXPECT_EQ(error_of(map_of(units_of_a(0), longest + "y")),
            "[map] expected texts of at most 256 bytes; found a longer one of unit 353");
}

// The array leads from "a" to itself, so that every text of it alone goes on to be a string of the map.
TEST(Precompiled, ACircleInTheMapEnds) {
  std::vector<uint32_t> units(0x100);
  units['a'] = 'a' << 10 | 'a';
  const Precompiled map(map_of(units, std::string(1, '\0')), "map");
  const std::string text(100'000, 'a');
  const clearhead::tests::ThreadClock clock;
  for (size_t at = 0; at < text.size(); ++at) ASSERT_FALSE(map.find_longest(std::string_view(text).substr(at)));
  EXPECT_LT(clock.seconds(), 1 * clearhead::tests::kSlower);
}

// Any units and texts: nothing outside is read, whether the map is refused or not.
TEST(Precompiled, ReadsNothingOutside) {
  std::mt19937 random(20270);
  size_t read = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint32_t> units = units_of_a(0);
    if (round % 4 == 0) units[0] = random();
    for (int i = 0; i < 3; ++i) units[random() % units.size()] = static_cast<uint32_t>(random()) >> random() % 20;
    if (round % 3 == 0) units.resize(random() % 600 + 1);
    try {
      const Precompiled map(map_of(units, "yz"), "map");
      ++read;
      for (int byte = 0; byte < 0x80; ++byte)
        EXPECT_LE(normalized(map, std::string(3, static_cast<char>(byte))).size(), 6u);
      normalized(map, "a\u0301\u4f60\U0001f600");
    } catch (const base::Error&) {
    }
  }
  EXPECT_GT(read, 100u);
}

TEST(Precompiled, TimeGrowsWithTheLength) {
  const Precompiled map(map_of(units_of_a(0), "yz"), "map");
  std::string marks = "b";
  for (int i = 0; i < 500'000; ++i) marks += "\u0301";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(normalized(map, marks), marks);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 10.0);
}

TEST(Grapheme, EndsWhereThePersonWouldSay) {
  const auto ends = [](std::string_view text) {
    std::vector<size_t> result;
    for (size_t at = 0; at < text.size();) result.push_back(at = end_of_grapheme(text, at));
    return result;
  };
  using Ends = std::vector<size_t>;
  EXPECT_EQ(ends("ab"), (Ends{1, 2}));
  EXPECT_EQ(ends("e\u0301\u0316x"), (Ends{5, 6}));
  EXPECT_EQ(ends("\r\n\n\r"), (Ends{2, 3, 4}));
  EXPECT_EQ(ends("\n\u0301"), (Ends{1, 3})) << "nothing joins a control";
  EXPECT_EQ(ends("\u1100\u1161\u11a8\uac00\u11a8\u11a8\u1161"), (Ends{9, 18, 21})) << "Hangul";
  EXPECT_EQ(ends("\U0001f1e9\U0001f1ea\U0001f1eb"), (Ends{8, 12})) << "flags";
  EXPECT_EQ(ends("\U0001f468\u200d\U0001f469\u200da"), (Ends{14, 15})) << "pictures with joiners";
  EXPECT_EQ(ends("\U0001f468\u0301\u200d\u00a9\u00a9"), (Ends{11, 13}));
  EXPECT_EQ(ends("\u0600a\u0903b"), (Ends{6, 7})) << "what stands before a letter, and a mark with a space of its own";
  EXPECT_EQ(ends("\u0915\u094d\u0916\u0915"), (Ends{9, 12})) << "consonants that a virama joins";
  EXPECT_EQ(ends("\u0915\u094d\u200c\u0916"), (Ends{9, 12})) << "and what keeps them apart";
}

TEST(Base64, ReadsWhatTheStandardHas) {
  EXPECT_EQ(decode_base64("", "w"), "");
  EXPECT_EQ(decode_base64("Zg==", "w"), "f");
  EXPECT_EQ(decode_base64("Zm8=", "w"), "fo");
  EXPECT_EQ(decode_base64("Zm9v/+8A", "w"), std::string_view("foo\xff\xef\0", 6));
  EXPECT_EQ(error_text([] { decode_base64("Zg=", "w"); }), "[w] expected base64; found 3 characters");
  EXPECT_EQ(error_text([] { decode_base64("Zm 8", "w"); }), "[w] expected base64; found \" \" at character 2");
  EXPECT_EQ(error_text([] { decode_base64("Z===", "w"); }), "[w] expected base64; found \"=\" at character 1");
  EXPECT_EQ(error_text([] { decode_base64("Zh==", "w"); }), "[w] expected base64; found bits behind the last byte");
}

}  // namespace
}  // namespace clearhead::text
