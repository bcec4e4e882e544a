// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/base/memory.h"
#include "clearhead/text/model.h"

namespace clearhead::text {

// The words that a model has cut before, with their pieces: texts repeat most of their words. A table of fixed size in
// which two words share a place and a newer one drives out the older, and a store of pieces that is emptied when it is
// full, so that memory stays below kMostBytes. Used by one thread at a time.
class WordCache {
 public:
  static constexpr size_t kLongestWord = 128;
  static constexpr size_t kMostBytes = size_t{6} << 20;

  WordCache() : room_(base::AlignedBuffer::mapped((size_t{1} << kPlaceBits) * sizeof(Place))) {}

  // Appends the pieces of a word of text, which are those that `cut(word)` appends.
  template <class Cut>
  void add(std::string_view text, Span word, std::vector<Piece>& pieces, const Cut& cut) {
    if (word.size() > kLongestWord || word.size() == 0) return cut(word);
    const Key key = key_of(text, word);
    const size_t place = place_of(key);
    auto& [newer, older] = places()[place].entries;
    if (holds(newer, key, text, word)) return copy(newer, word, pieces);
    if (holds(older, key, text, word)) {
      std::swap(newer, older);
      return copy(newer, word, pieces);
    }
    const size_t first = pieces.size();
    cut(word);
    keep(place, key, text, word, {pieces.begin() + static_cast<std::ptrdiff_t>(first), pieces.end()});
  }

 private:
  static constexpr int kPlaceBits = 15;
  static constexpr size_t kMostPieces = size_t{1} << 18, kMostLongBytes = size_t{1} << 20;
  static constexpr size_t kWhole = 16;  // words of so many bytes are their own key

  // The bytes of a short word, zeros behind; of a longer one a hash.
  struct Key {
    uint64_t low, high;
    uint32_t size;
  };

  // A piece of a word, its span from the beginning of the word.
  struct Kept {
    uint32_t id;
    uint8_t begin, end;
    bool continues_word, unknown;
  };

  struct Entry {
    uint64_t low = 0, high = 0;
    uint32_t first = 0;       // the id of a single piece, else the place of the first in pieces_
    uint32_t long_bytes = 0;  // the place of a longer word in long_bytes_
    uint8_t size = 0;         // 0: free
    uint8_t count = 0;        // pieces
    bool whole = false;       // one known piece for all of the word
  };

  // On one cache line; all zeros where no word came yet.
  struct alignas(64) Place {
    std::array<Entry, 2> entries;  // the word that came last first
  };

  static Key key_of(std::string_view text, Span word) {
    const char* bytes = text.data() + word.begin;
    const size_t size = word.size();
    Key key = {0, 0, static_cast<uint32_t>(size)};
    if (size > kWhole) return long_key(bytes, size);
    if (text.size() - word.begin >= kWhole) {
      std::memcpy(&key.low, bytes, 8);
      std::memcpy(&key.high, bytes + 8, 8);
      if (size < 8) key.low &= (uint64_t{1} << 8 * size) - 1;
      if (size <= 8) {
        key.high = 0;
      } else if (size < kWhole) {
        key.high &= (uint64_t{1} << 8 * (size - 8)) - 1;
      }
    } else {
      char padded[kWhole] = {};
      std::memcpy(padded, bytes, size);
      std::memcpy(&key.low, padded, 8);
      std::memcpy(&key.high, padded + 8, 8);
    }
    return key;
  }

  static Key long_key(const char* bytes, size_t size);

  static size_t place_of(const Key& key) {
    const uint64_t mixed = key.low * 0x9e3779b97f4a7c15u ^ (key.high + key.size) * 0xc2b2ae3d27d4eb4fu;
    return static_cast<size_t>((mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u >> (64 - kPlaceBits));
  }

  bool holds(const Entry& entry, const Key& key, std::string_view text, Span word) const {
    if (entry.low != key.low || entry.high != key.high || entry.size != key.size) return false;
    return key.size <= kWhole ||
           std::memcmp(long_bytes_.data() + entry.long_bytes, text.data() + word.begin, key.size) == 0;
  }

  void copy(const Entry& entry, Span word, std::vector<Piece>& pieces) const {
    if (entry.whole) return void(pieces.push_back({.id = entry.first, .span = word}));
    for (uint32_t i = 0; i < entry.count; ++i) {
      const Kept& kept = pieces_[entry.first + i];
      pieces.push_back({.id = kept.id,
                        .span = {word.begin + kept.begin, word.begin + kept.end},
                        .continues_word = kept.continues_word,
                        .unknown = kept.unknown});
    }
  }

  void keep(size_t place, const Key& key, std::string_view text, Span word, std::span<const Piece> pieces);

  Place* places() { return reinterpret_cast<Place*>(room_.data()); }

  base::AlignedBuffer room_;  // [2^kPlaceBits]: Place. A short text touches few of its pages.
  std::vector<Kept> pieces_;
  std::string long_bytes_;
};

// Caches of one tokenizer: each text that is being encoded has one for itself.
class WordCaches {
 public:
  // A cache for as long as it lives.
  class Loan {
   public:
    explicit Loan(WordCaches& from) : from_(from), cache_(from.take()) {}
    ~Loan() { from_.give_back(std::move(cache_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    WordCache& operator*() const { return *cache_; }

   private:
    WordCaches& from_;
    std::unique_ptr<WordCache> cache_;
  };

 private:
  std::unique_ptr<WordCache> take();
  void give_back(std::unique_ptr<WordCache> cache);

  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> free_;
};

}  // namespace clearhead::text
