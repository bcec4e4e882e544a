// SPDX-License-Identifier: Apache-2.0
// The parts under the tokenizer, each by itself.
#include <gtest/gtest.h>

#include <algorithm>

#include "clearhead/text/aligned_text.h"
#include "clearhead/text/bert_normalizer.h"
#include "clearhead/text/merge_table.h"
#include "clearhead/text/short_pieces.h"
#include "clearhead/text/text_index.h"
#include "clearhead/text/trie.h"
#include "clearhead/text/unicode.h"

namespace clearhead::text {
namespace {

bool has(char32_t c, Property property) { return (property_table()[c] & property) != 0; }

std::u32string all_of(const ShortCodePoints& code_points) { return {code_points.begin(), code_points.end()}; }

TEST(Unicode, PropertiesAreTheLibrarysNotTodays) {
  EXPECT_TRUE(has('$', kPunctuation)) << "ASCII symbols too";
  EXPECT_TRUE(has(0x2e42, kPunctuation));
  EXPECT_FALSE(has(0x2e43, kPunctuation)) << "younger than the library's tables";
  EXPECT_TRUE(has(0x166d, kPunctuation)) << "a symbol today";
  EXPECT_FALSE(has(0xa2, kPunctuation));
  EXPECT_TRUE(has(0x85, kWhiteSpace));
  EXPECT_TRUE(has(0x85, kRemoved));
  EXPECT_FALSE(has(0x180e, kWhiteSpace));
  EXPECT_TRUE(has(0xfffd, kRemoved));
  EXPECT_FALSE(has('\n', kRemoved));
  EXPECT_FALSE(has(0x378, kRemoved)) << "unassigned is not removed";
  EXPECT_TRUE(has(0xf0000, kRemoved)) << "private use is";
  EXPECT_FALSE(has(0x10ffff, kRemoved));
  EXPECT_FALSE(has(0x2b820, kHan)) << "the library's extension E begins too late";
  EXPECT_TRUE(has(0x2b920, kHan));
  EXPECT_TRUE(has('_', kWord));
  EXPECT_FALSE(has('-', kWord));
}

TEST(Unicode, DecompositionLowerCaseAndClass) {
  EXPECT_EQ(all_of(decomposition_of(U'\u00e9')), U"e\u0301");
  EXPECT_EQ(all_of(decomposition_of(U'\ud55c')), U"\u1112\u1161\u11ab");
  EXPECT_EQ(all_of(decomposition_of(U'\uac00')), U"\u1100\u1161");
  EXPECT_EQ(all_of(decomposition_of(U'\u1f82')), U"\u03b1\u0313\u0300\u0345");
  EXPECT_EQ(all_of(decomposition_of(U'a')), U"a");
  EXPECT_EQ(all_of(lower_case_of(U'A')), U"a");
  EXPECT_EQ(all_of(lower_case_of(U'\u0130')), U"i\u0307");
  EXPECT_EQ(all_of(lower_case_of(U'\u03a3')), U"\u03c3");
  EXPECT_EQ(all_of(lower_case_of(U'\u0101')), U"\u0101") << "between two capitals of one range";
  EXPECT_EQ(combining_class_of(0x301), 230);
  EXPECT_EQ(combining_class_of(0x316), 220);
  EXPECT_EQ(combining_class_of('a'), 0);
}

TEST(Unicode, FlagsSayWhatTheFunctionsDo) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    const std::u32string itself(1, c);
    ASSERT_EQ(has(c, kCased), all_of(lower_case_of(c)) != itself) << std::hex << uint32_t{c};
    const bool composed = all_of(decomposition_of(c)) != itself || combining_class_of(c) != 0;
    ASSERT_EQ(has(c, kComposed), composed) << std::hex << uint32_t{c};
  }
}

std::string normalized(const BertNormalizer::Config& config, std::string_view text) {
  AlignedText result;
  BertNormalizer(config).normalize(AlignedText(text, 0), result);
  return std::string(result.bytes());
}

TEST(BertNormalizer, EachStepByItself) {
  const std::string text = "A\t\x01\u00c9\u4f60\u200b";
  const BertNormalizer::Config none = {false, false, false, false};
  EXPECT_EQ(normalized(none, text), text);
  EXPECT_EQ(normalized({.clean_text = true, .space_han = false, .strip_accents = false, .lower_case = false}, text),
            "A \u00c9\u4f60");
  EXPECT_EQ(normalized({.clean_text = false, .space_han = true, .strip_accents = false, .lower_case = false}, text),
            "A\t\x01\u00c9 \u4f60 \u200b");
  EXPECT_EQ(normalized({.clean_text = false, .space_han = false, .strip_accents = true, .lower_case = false}, text),
            "A\t\x01"
            "E\u4f60\u200b");
  EXPECT_EQ(normalized({.clean_text = false, .space_han = false, .strip_accents = false, .lower_case = true}, text),
            "a\t\x01\u00e9\u4f60\u200b");
}

TEST(BertNormalizer, LongAsciiRunsByteForByte) {
  for (size_t length = 1; length < 40; ++length) {
    for (size_t at = 0; at < length; ++at) {
      for (const char odd : {'\x1f', '\x7f', '\n', 'Z', '\0', '\x20'}) {
        std::string text(length, 'x'), expected(length, 'x');
        text[at] = odd;
        if (odd == 'Z') {
          expected[at] = 'z';
        } else if (odd == '\n' || odd == ' ') {
          expected[at] = ' ';
        } else {
          expected.erase(at, 1);
        }
        ASSERT_EQ(normalized({}, text), expected) << length << " " << at << " " << int{odd};
      }
    }
  }
}

TEST(BertNormalizer, KeptMarksAreReordered) {
  const BertNormalizer::Config accents = {
      .clean_text = false, .space_han = false, .strip_accents = true, .lower_case = false};
  // U+302E has class 224 and is kept; U+1D165 (216) is kept, also where U+1D15E brings it; U+0334 (1) is dropped.
  EXPECT_EQ(normalized(accents, "x\u302e\u0334y"), "x\u302ey");
  EXPECT_EQ(normalized(accents, "x\u302e\U0001d165"), "x\U0001d165\u302e");
  EXPECT_EQ(normalized(accents, "\U0001d15e"), "\U0001d157\U0001d165");

  AlignedText result;
  BertNormalizer(accents).normalize(AlignedText("x\u302e\U0001d165", 0), result);
  EXPECT_EQ(result.original({1, 5}), (Span{1, 4})) << "the first mark stands for the first mark of the source";
  EXPECT_EQ(result.original({5, 8}), (Span{4, 8}));
}

TEST(AlignedText, KnowsWhereBytesCameFrom) {
  const AlignedText source("abcdef", 10);
  AlignedText text;
  text.keep("ab", source, 0);
  text.replace("XYZ", {12, 14});
  text.keep("ef", source, 4);
  EXPECT_EQ(text.bytes(), "abXYZef");
  EXPECT_EQ(text.original({0, 1}), (Span{10, 11}));
  EXPECT_EQ(text.original({1, 3}), (Span{11, 14})) << "all of a replaced stretch";
  EXPECT_EQ(text.original({3, 4}), (Span{12, 14}));
  EXPECT_EQ(text.original({4, 7}), (Span{12, 16}));
  EXPECT_EQ(text.original({5, 6}), (Span{14, 15}));

  const AlignedText part = text.slice({1, 6});
  EXPECT_EQ(part.bytes(), "bXYZe");
  EXPECT_EQ(part.original({0, 1}), (Span{11, 12}));
  EXPECT_EQ(part.original({2, 5}), (Span{12, 15}));

  AlignedText::Cursor cursor(text);
  EXPECT_EQ(cursor.original({0, 2}), (Span{10, 12}));
  EXPECT_EQ(cursor.original({5, 7}), (Span{14, 16}));
  EXPECT_EQ(cursor.original({1, 2}), (Span{11, 12})) << "also backwards";

  text.truncate(3);
  EXPECT_EQ(text.bytes(), "abX");
  text.keep("f", source, 5);
  EXPECT_EQ(text.original({3, 4}), (Span{15, 16}));
}

TEST(Trie, FindsTheLongest) {
  Trie trie;
  EXPECT_TRUE(trie.add("a", 1));
  EXPECT_TRUE(trie.add("abc", 2));
  EXPECT_TRUE(trie.add(std::string_view("\0x", 2), 3));
  EXPECT_FALSE(trie.add("abc", 4)) << "there already";
  EXPECT_FALSE(trie.add(std::string(Trie::kMaxStringBytes + 1, 'x'), 5)) << "too long";
  EXPECT_EQ(trie.longest("abcd")->value, 2u);
  EXPECT_EQ(trie.longest("abcd")->length, 3u);
  EXPECT_EQ(trie.longest("abd")->value, 1u);
  EXPECT_EQ(trie.longest(std::string_view("\0xy", 3))->value, 3u);
  EXPECT_FALSE(trie.longest("b"));
  EXPECT_FALSE(trie.longest(""));
  EXPECT_EQ(trie.walk("ab") == Trie::kNone, false);
  EXPECT_EQ(trie.value(trie.walk("ab")), Trie::kNone);
  EXPECT_EQ(trie.walk("b"), Trie::kNone);
}

TEST(Trie, HoldsManyStrings) {
  Trie trie;
  for (uint32_t i = 0; i < 20000; ++i) ASSERT_TRUE(trie.add("s" + std::to_string(i * 7919), i));
  for (uint32_t i = 0; i < 20000; ++i) ASSERT_EQ(trie.longest("s" + std::to_string(i * 7919) + "!")->value, i);
}

TEST(TextIndex, GivesEachTextTheNumberThatItHadFirst) {
  std::vector<std::string> texts = {""};
  for (size_t i = 1; i < 5000; ++i) texts.push_back("text " + std::to_string(i));
  const auto text_of = [&](uint32_t number) { return std::string_view(texts[number]); };
  TextIndex index(texts.size());
  EXPECT_EQ(index.find("", text_of), TextIndex::kNone);
  for (uint32_t i = 0; i < texts.size(); ++i) ASSERT_EQ(index.add(texts[i], i, text_of), TextIndex::kNone);
  for (uint32_t i = 0; i < texts.size(); ++i) {
    ASSERT_EQ(index.find(texts[i], text_of), i);
    ASSERT_EQ(index.add(texts[i], 7000, text_of), i);
  }
  EXPECT_EQ(index.find("text", text_of), TextIndex::kNone);
}

TEST(MergeTable, OfEqualPairsTheLastCounts) {
  MergeTable merges(3);
  merges.set(1, 2, {0, 10});
  merges.set(2, 1, {1, 11});
  merges.set(1, 2, {2, 12});
  EXPECT_EQ(merges.find(1, 2).rank, 2u);
  EXPECT_EQ(merges.find(1, 2).id, 12u);
  EXPECT_EQ(merges.find(2, 1).rank, 1u);
  EXPECT_EQ(merges.find(2, 2).rank, MergeTable::kNone);
}

TEST(ShortPieces, FindsWholeWordsOfEveryLength) {
  const std::string letters = "abcdefgh";
  ShortPieces pieces(64);
  for (uint32_t size = 1; size <= 8; ++size) pieces.add(letters.substr(0, size), size);
  pieces.add(std::string("a\0", 2), 20);
  pieces.add("", 21);
  pieces.add("abcdefghi", 22);
  for (uint32_t size = 1; size <= 8; ++size) EXPECT_EQ(pieces.find(letters.substr(0, size)), size);
  EXPECT_EQ(pieces.find(std::string_view("a\0", 2)), 20u) << "a zero byte is not the end";
  EXPECT_EQ(pieces.find("b"), std::nullopt);
  EXPECT_EQ(pieces.find(""), std::nullopt);
  EXPECT_EQ(pieces.find("abcdefghi"), std::nullopt);
}

}  // namespace
}  // namespace clearhead::text
