// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/tokenizer.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/text/small_tokenizer.h"

namespace clearhead::text::tests {
namespace {

using clearhead::tests::error_text;
using namespace std::string_literals;

std::string small(std::string_view text) {
  static const Tokenizer tokenizer = from(small_json());
  return shown(tokenizer.encode(text));
}

// shown() of a text by the small tokenizer with one more added token, changed by `flags`.
std::string with_added(nlohmann::json flags, std::string_view text, std::string content = "Xy") {
  nlohmann::json json = small_json();
  json["added_tokens"].push_back(added_token(18, content));
  json["added_tokens"].back().update(flags);
  return shown(from(json).encode(text));
}

TEST(Tokenizer, SaysAllOfAToken) {
  const Encoding encoding = from(small_json()).encode("Playing z");
  ASSERT_EQ(encoding.tokens.size(), 5u);
  EXPECT_EQ(encoding.unknown_count, 1u);
  const Token& start = encoding.tokens[0];
  EXPECT_EQ(start.text, "[CLS]");
  EXPECT_EQ(start.id, 1);
  EXPECT_TRUE(start.special);
  EXPECT_EQ(start.begin, start.end);
  const Token& play = encoding.tokens[1];
  EXPECT_EQ(play.text, "Play");
  EXPECT_EQ(play.piece, "play");
  EXPECT_FALSE(play.special);
  EXPECT_FALSE(play.continues_word);
  const Token& ing = encoding.tokens[2];
  EXPECT_EQ(ing.text, "ing");
  EXPECT_EQ(ing.piece, "##ing");
  EXPECT_EQ(ing.begin, 4u);
  EXPECT_EQ(ing.end, 7u);
  EXPECT_TRUE(ing.continues_word);
  EXPECT_EQ(encoding.tokens[3].text, "z");
  EXPECT_EQ(encoding.tokens[3].piece, "[UNK]");
  EXPECT_FALSE(encoding.tokens[3].special);
}

TEST(Tokenizer, WithoutSpecialTokens) {
  const Encoding encoding = from(small_json()).encode("the a", false);
  EXPECT_EQ(encoding.tokens.size(), 2u);
  EXPECT_TRUE(from(small_json()).encode("", false).tokens.empty());
  EXPECT_EQ(from(small_json()).encode("").tokens.size(), 2u);
}

TEST(Tokenizer, CutsWordsIntoTheLongestPieces) {
  EXPECT_EQ(small("played"), "play[0,4) ##ed[4,6)");
  EXPECT_EQ(small("ab"), "ab[0,2)");
  EXPECT_EQ(small("abb"), "ab[0,2) ##b[2,3)");
  EXPECT_EQ(small("playz"), "[UNK][0,5)") << "one failure makes the whole word unknown";
  EXPECT_EQ(small("abbbbbbbbb"), "ab[0,2) ##b[2,3) ##b[3,4) ##b[4,5) ##b[5,6) ##b[6,7) ##b[7,8) ##b[8,9) ##b[9,10)");
  EXPECT_EQ(small("abbbbbbbbbb"), "[UNK][0,11)") << "11 code points are too long";
  EXPECT_EQ(small("a!b"), "a[0,1) ![1,2) b[2,3)");
}

TEST(Tokenizer, NormalizesAndKeepsOffsets) {
  EXPECT_EQ(small("NA\u00cfVE"), "naive[0,6)");
  EXPECT_EQ(small("nai\u0308ve"), "naive[0,7)");
  EXPECT_EQ(small("a\u4f60b"), "a[0,1) \u4f60[1,4) b[4,5)");
  EXPECT_EQ(small("\ud55c"), "\u1112[0,3) ##\u1161[0,3) ##\u11ab[0,3)") << "every letter stands for the syllable";
  EXPECT_EQ(small("a\0b"s), "ab[0,3)");
  EXPECT_EQ(small("\0 a\x0b \u200b"s), "a[2,3)");
  EXPECT_EQ(small("a\u0085b"), "ab[0,4)") << "a control is deleted before white space is looked for";
  EXPECT_EQ(small("a\u3000b"), "a[0,1) b[4,5)");
}

TEST(Tokenizer, InvalidUtf8IsAsIfReplaced) {
  EXPECT_EQ(small("a\xff"
                  "b"),
            "ab[0,3)")
      << "BERT's cleaning deletes U+FFFD";
  EXPECT_EQ(small("a \xc0\xaf b"), "a[0,1) b[5,6)");
  EXPECT_EQ(small("\xed\xa0\x80"
                  "a"),
            "a[3,4)");
  EXPECT_EQ(small("\xf4\x90\x80\x80"
                  "a"),
            "a[4,5)");
  EXPECT_EQ(small("a\xe4\xb8"), "a[0,1)");
  const Encoding encoding = from(small_json())
                                .encode(
                                    "a\xff\xe4\xb8"
                                    "b\u4f60");
  ASSERT_EQ(encoding.tokens.size(), 4u);
  EXPECT_EQ(encoding.tokens[1].text, "a\ufffd\ufffdb") << "what people read is valid";
  EXPECT_EQ(encoding.tokens[2].begin, 5u);

  nlohmann::json kept = small_json();
  kept["normalizer"] = nullptr;
  kept["model"]["vocab"]["\ufffd"] = 18;
  EXPECT_EQ(shown(from(kept).encode("\xff \xe4\xb8 a")), "\ufffd[0,1) \ufffd[2,4) a[5,6)");
}

TEST(Tokenizer, AddedTokensAreCutOutOfTheRawText) {
  EXPECT_EQ(with_added(nlohmann::json::object(), "aXya Xy xy"), "a[0,1) Xy[1,3) a[3,4) Xy[5,7) [UNK][8,10)");
  EXPECT_EQ(small("a[SEP]b [sep]"), "a[0,1) [SEP][1,6) b[6,7) [UNK][8,9) [UNK][9,12) [UNK][12,13)");
  const Encoding typed = from(small_json()).encode("[SEP]");
  EXPECT_FALSE(typed.tokens[1].special) << "found in the text, not put in";
  EXPECT_EQ(typed.tokens[1].id, 2);
  EXPECT_EQ(typed.unknown_count, 0u);
}

TEST(Tokenizer, TheLongestAddedTokenWins) {
  nlohmann::json json = small_json();
  for (const char* content : {"X", "XX", "XXXY"}) {
    json["added_tokens"].push_back(added_token(16 + static_cast<int>(json["added_tokens"].size()), content));
  }
  EXPECT_EQ(shown(from(json).encode("XXXXY XXX")), "XX[0,2) XX[2,4) [UNK][4,5) XX[6,8) X[8,9)");
}

TEST(Tokenizer, FlagsOfAddedTokens) {
  EXPECT_EQ(with_added({{"single_word", true}}, "a Xy aXy Xy\u4f60 Xy!"),
            "a[0,1) Xy[2,4) [UNK][5,8) [UNK][9,11) \u4f60[11,14) Xy[15,17) ![17,18)");
  EXPECT_EQ(with_added({{"lstrip", true}}, "a \u3000 Xy a"), "a[0,1) Xy[1,8) a[9,10)");
  EXPECT_EQ(with_added({{"rstrip", true}}, "a Xy\t\u00a0a"), "a[0,1) Xy[2,7) a[7,8)");
  EXPECT_EQ(with_added({{"lstrip", true}, {"rstrip", true}}, " Xy Xy "), "Xy[0,4) Xy[4,7)");
  EXPECT_EQ(with_added({{"normalized", true}}, "aX\u00fda xY"), "a[0,1) Xy[1,4) a[4,5) Xy[6,8)")
      << "found, itself in lower case, in the text without accents";
  EXPECT_EQ(with_added({{"normalized", true}}, "a", "\u0301"), "a[0,1)") << "nothing is left of it: never found";
}

TEST(Tokenizer, ComponentsMayBeAbsent) {
  nlohmann::json json = small_json();
  json["normalizer"] = json["pre_tokenizer"] = json["post_processor"] = json["decoder"] = nullptr;
  json["model"]["max_input_chars_per_word"] = 100;
  const Tokenizer tokenizer = from(json);
  EXPECT_EQ(shown(tokenizer.encode("I")), "I[0,1)");
  EXPECT_EQ(shown(tokenizer.encode("a b")), "[UNK][0,3)") << "without a pre-tokenizer all is one word";
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{3, 4}, true), "play ##ing");
}

TEST(Tokenizer, BertProcessingAndTypeIds) {
  nlohmann::json json = small_json();
  json["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"[SEP]", 2}}, {"cls", {"[CLS]", 1}}};
  const Encoding bert = from(json).encode("a");
  ASSERT_EQ(bert.tokens.size(), 3u);
  EXPECT_EQ(bert.tokens[0].id, 1);
  EXPECT_EQ(bert.tokens[2].id, 2);
  json = small_json();
  json["post_processor"]["single"][1]["Sequence"]["type_id"] = 7;
  json["post_processor"]["single"][2]["SpecialToken"]["type_id"] = 8;
  const Encoding typed = from(json).encode("a");
  EXPECT_EQ(typed.tokens[0].type_id, 0u);
  EXPECT_EQ(typed.tokens[1].type_id, 7u);
  EXPECT_EQ(typed.tokens[2].type_id, 8u);
  EXPECT_EQ(from(json).encode("a", false).tokens[0].type_id, 7u);
}

TEST(Tokenizer, VocabularyAndAddedTokens) {
  nlohmann::json json = small_json();
  json["added_tokens"].push_back(added_token(18, "Xy"));
  const Tokenizer tokenizer = from(json);
  EXPECT_EQ(tokenizer.vocab_size(), 19u);
  EXPECT_EQ(tokenizer.id_of("Xy"), 18);
  EXPECT_EQ(tokenizer.id_of("##ing"), 4);
  EXPECT_EQ(tokenizer.id_of("##in"), std::nullopt);
  EXPECT_EQ(tokenizer.piece_of(18), "Xy");
  EXPECT_EQ(tokenizer.piece_of(13), "\u4f60");
  EXPECT_EQ(error_text([&] { tokenizer.piece_of(19); }), "usage: [token id] expected 0 to 18; found 19");
  EXPECT_EQ(error_text([&] { tokenizer.piece_of(-1); }), "usage: [token id] expected 0 to 18; found -1");
}

TEST(Tokenizer, AddedIdsThatDoNotFitAreAWarning) {
  nlohmann::json json = small_json();
  json["added_tokens"].push_back(added_token(40, "Xy"));
  json["added_tokens"].push_back(added_token(41, "play"));
  const Tokenizer tokenizer = from(json);
  EXPECT_EQ(tokenizer.id_of("Xy"), 18);
  EXPECT_EQ(tokenizer.id_of("play"), 3);
  const std::vector<std::string> expected = {"[tokenizer.json added_tokens] \"Xy\" has id 40 in the file but gets 18",
                                             "[tokenizer.json added_tokens] \"play\" has id 41 in the file but gets 3"};
  EXPECT_EQ(tokenizer.warnings(), expected);
}

TEST(Tokenizer, Decodes) {
  const Tokenizer tokenizer = from(small_json());
  const std::vector<int64_t> ids = {1, 9, 3, 4, 8, 2};
  EXPECT_EQ(tokenizer.decode(ids, true), "the playing!");
  EXPECT_EQ(tokenizer.decode(ids, false), "[CLS] the playing! [SEP]");
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{4, 3}, true), "##ing play") << "no word to go on with";
  EXPECT_EQ(tokenizer.decode({}, true), "");
  EXPECT_EQ(error_text([&] { tokenizer.decode(std::vector<int64_t>{18}, true); }),
            "usage: [token id] expected 0 to 17; found 18");
}

TEST(Tokenizer, RefusesATextThatIsTooLong) {
  const std::string_view too_long("", (size_t{1} << 30) + 1);  // refused by its size, before a byte of it is read
  EXPECT_EQ(error_text([&] { from(small_json()).encode(too_long); }),
            "usage: [text] expected at most 1073741824 bytes; found 1073741825");
}

TEST(Tokenizer, ReadsAFile) {
  const clearhead::tests::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "tokenizer.json";
  std::ofstream(path) << small_json().dump();
  EXPECT_EQ(shown(Tokenizer::from_file(path).encode("the")), "the[0,3)");
  EXPECT_NE(error_text([&] { Tokenizer::from_file(folder.path() / "none.json"); }).find("none.json"),
            std::string::npos);
}

TEST(Tokenizer, MayBeUsedByManyThreads) {
  const Tokenizer tokenizer = from(small_json());
  std::vector<std::string> results(4);
  {
    std::vector<std::jthread> threads;
    for (std::string& result : results) {
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) result = shown(tokenizer.encode("playing \ud55c na\u00efve"));
      });
    }
  }
  for (const std::string& result : results) EXPECT_EQ(result, results[0]);
}

}  // namespace
}  // namespace clearhead::text::tests
