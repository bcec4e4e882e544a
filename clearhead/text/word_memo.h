// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "clearhead/text/model.h"

namespace clearhead::text {

// Cuts the words of one text, each by `cut` unless the text had the same word shortly before: then its pieces are
// copied. Texts repeat most of their words.
class WordMemo {
 public:
  WordMemo(std::string_view text, size_t words, std::vector<Piece>& pieces)
      : text_(text),
        pieces_(pieces),
        entries_(words < kFewestWords ? 0 : std::min(std::bit_ceil(words), kMostEntries)) {}

  template <class Cut>
  void add(Span word, const Cut& cut) {
    if (entries_.empty() || word.size() > kLongestWord || word.size() == 0) return cut(word);
    const std::string_view bytes = text_.substr(word.begin, word.size());
    Entry& entry = entries_[std::hash<std::string_view>()(bytes) & (entries_.size() - 1)];
    if (entry.count > 0 && text_.substr(entry.word.begin, entry.word.size()) == bytes) {
      const uint32_t moved = word.begin - entry.word.begin;
      for (uint32_t i = 0; i < entry.count; ++i) {
        Piece piece = pieces_[entry.first + i];
        piece.span = {piece.span.begin + moved, piece.span.end + moved};
        pieces_.push_back(piece);
      }
      return;
    }
    const size_t first = pieces_.size();
    cut(word);
    entry = {word, static_cast<uint32_t>(first), static_cast<uint32_t>(pieces_.size() - first)};
  }

 private:
  static constexpr size_t kFewestWords = 16, kMostEntries = 4096, kLongestWord = 64;

  struct Entry {
    Span word = {0, 0};
    uint32_t first = 0, count = 0;  // its pieces; 0: free
  };

  std::string_view text_;
  std::vector<Piece>& pieces_;
  std::vector<Entry> entries_;
};

}  // namespace clearhead::text
