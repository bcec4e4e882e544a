// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/word.h"

#include <gtest/gtest.h>

#include "clearhead/text/toy_tokenizer.h"
#include "tests/support/error_text.h"
#include "tests/text/law_tokenizers.h"
#include "tests/text/small_tokenizer.h"

namespace clearhead::text::tests {
namespace {

using Groups = std::vector<std::pair<size_t, size_t>>;

TEST(Word, GroupsPieces) {
  const Encoding encoding = from(small_json()).encode("playing the ab!b");  // [CLS] play ##ing the ab ! b [SEP]
  EXPECT_EQ(word_groups(encoding), (Groups{{0, 1}, {1, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 8}}));
  EXPECT_EQ(word_groups(Encoding()), Groups());
}

TEST(Word, Punctuation) {
  EXPECT_TRUE(is_punctuation("!"));
  EXPECT_TRUE(is_punctuation("\u3002"));
  EXPECT_TRUE(is_punctuation("..."));
  EXPECT_FALSE(is_punctuation("a."));
  EXPECT_FALSE(is_punctuation(""));
  EXPECT_FALSE(is_punctuation("\xff"));
  EXPECT_TRUE(has_han("ab\u4f60"));
  EXPECT_FALSE(has_han("ab\u3042"));
  EXPECT_FALSE(has_han(""));
}

TEST(Word, JoinsByTheCodePointsOfBothSides) {
  const std::string_view text = "ab, \u4f60\u00e9x";  // bytes: a b , space, 3, 2, x
  EXPECT_TRUE(joins_word(text, 1));
  EXPECT_FALSE(joins_word(text, 2)) << "a mark follows";
  EXPECT_FALSE(joins_word(text, 7)) << "a Chinese character precedes";
  EXPECT_TRUE(joins_word(text, 9));
}

// A piece may stand at an end of the text, as the space that was trimmed from the offsets of byte-level pairs: nothing
// before it or behind it may be read.
TEST(Word, NothingIsReadBeyondAnEndOfTheText) {
  const std::vector<char> bytes = {'!', 'a', '!'};  // no zero behind it
  const std::string_view all(bytes.data(), bytes.size());
  EXPECT_TRUE(joins_word(all.substr(1, 1), 0));
  EXPECT_TRUE(joins_word(all.substr(1, 1), 1));
  EXPECT_FALSE(joins_word(all, 0));
  EXPECT_FALSE(joins_word(all, 3));
  EXPECT_TRUE(joins_word("", 0));

  const Tokenizer trimming = from(byte_level_json(byte_level_step(true), true));
  const std::vector<char> spaced = {'a', ' ', ' ', ' '};
  const Encoding encoding = trimming.encode({spaced.data(), spaced.size()});
  EXPECT_EQ(shown(encoding), "a[0,1) \u0120\u0120[3,3) \u0120[4,4)");
  EXPECT_EQ(word_groups(encoding), (Groups{{0, 1}, {1, 3}}));
}

TEST(ToyTokenizer, CutsAtSpacePunctuationAndHan) {
  EXPECT_EQ(shown(toy_encode("The cat, \u6211love\u4f60 don't")),
            "The[0,3) cat[4,7) ,[7,8) \u6211[9,12) love[12,16) \u4f60[16,19) don[20,23) '[23,24) t[24,25)");
  EXPECT_TRUE(toy_encode(" \n\u3000").tokens.empty());
  EXPECT_EQ(shown(toy_encode("a\xff"
                             "b\xe4\xb8")),
            "a[0,1) \ufffd[1,2) b[2,3) \ufffd[3,5)");
  EXPECT_EQ(toy_encode("a b").unknown_count, 0u);
}

TEST(ToyTokenizer, TheIdIsThatOfThePiece) {
  const Encoding encoding = toy_encode("the cat the The a");
  EXPECT_EQ(encoding.tokens[0].id, encoding.tokens[2].id);
  EXPECT_NE(encoding.tokens[0].id, encoding.tokens[3].id) << "case is kept";
  // FNV-1a of "a" is 0xaf63dc4c8601ec8c.
  EXPECT_EQ(encoding.tokens[4].id, 0x0601ec8c);
  for (const Token& token : encoding.tokens) {
    EXPECT_GE(token.id, 0);
    EXPECT_LT(token.id, int64_t{1} << 31);
    EXPECT_EQ(token.text, token.piece);
  }
}

TEST(ToyTokenizer, RefusesATextThatIsTooLong) {
  const std::string_view too_long("", (size_t{1} << 30) + 1);  // refused by its size, before a byte of it is read
  EXPECT_EQ(clearhead::tests::error_text([&] { toy_encode(too_long); }),
            "usage: [text] expected at most 1073741824 bytes; found 1073741825");
}

}  // namespace
}  // namespace clearhead::text::tests
