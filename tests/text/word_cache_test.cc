// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/word_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace clearhead::text {
namespace {

// Cuts a word into its bytes; the id tells which word and which byte.
void cut_bytes(const std::string& text, Span word, std::vector<Piece>& pieces) {
  for (uint32_t at = word.begin; at < word.end; ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    pieces.push_back({.id = static_cast<uint32_t>(word.size() << 8 | byte),
                      .span = {at, at + 1},
                      .continues_word = at > word.begin || byte == '?',
                      .unknown = byte == '?'});
  }
}

bool same(const Piece& a, const Piece& b) {
  return a.id == b.id && a.span == b.span && a.continues_word == b.continues_word && a.unknown == b.unknown;
}

// More words than the table and the store have room for, of all lengths around the limits, each asked for again later.
TEST(WordCache, GivesThePiecesThatCuttingGives) {
  WordCache cache;
  size_t cuts = 0, words = 0;
  for (const uint32_t size : {1U, 2U, 7U, 8U, 9U, 15U, 16U, 17U, 31U, 32U, 33U, 100U, 128U, 129U, 300U, 16U, 100U}) {
    std::string text;
    uint32_t state = size;
    for (uint32_t i = 0; i < 60'000; ++i) {
      state = state * 1664525U + 1013904223U;
      text += static_cast<char>("ab?\xe4"[state >> 30]);
    }
    for (int round = 0; round < 2; ++round) {
      for (uint32_t begin = 0; begin + size <= text.size(); begin += size) {
        const Span word = {begin, begin + size};
        std::vector<Piece> expected, pieces(3, Piece{.id = 1, .span = {0, 0}});
        cut_bytes(text, word, expected);
        cache.add(text, word, pieces, [&](Span own) {
          ++cuts;
          cut_bytes(text, own, pieces);
        });
        ++words;
        ASSERT_EQ(pieces.size(), expected.size() + 3) << size << " " << begin;
        for (size_t i = 0; i < expected.size(); ++i) ASSERT_TRUE(same(pieces[i + 3], expected[i])) << size << " " << i;
      }
    }
  }
  EXPECT_LT(cuts, words / 2);
}

TEST(WordCache, AWordThatStandsForNothingIsKnownToo) {
  WordCache cache;
  std::vector<Piece> pieces;
  size_t cuts = 0;
  for (int i = 0; i < 3; ++i) cache.add("word", {0, 4}, pieces, [&](Span) { ++cuts; });
  EXPECT_TRUE(pieces.empty());
  EXPECT_EQ(cuts, 1U);
}

TEST(WordCaches, LendsEachTextItsOwn) {
  WordCaches caches;
  const WordCaches::Loan first(caches);
  const WordCache* used = nullptr;
  {
    const WordCaches::Loan second(caches);
    used = &*second;
    EXPECT_NE(used, &*first);
  }
  const WordCaches::Loan again(caches);
  EXPECT_EQ(&*again, used);
}

}  // namespace
}  // namespace clearhead::text
