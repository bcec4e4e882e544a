// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/word_cache.h"

#include <algorithm>
#include <utility>

namespace clearhead::text {

WordCache::Key WordCache::long_key(const char* bytes, size_t size) {
  Key key = {size, 0, static_cast<uint32_t>(size)};
  const auto add = [&](const char* from) {
    uint64_t low, high;
    std::memcpy(&low, from, 8);
    std::memcpy(&high, from + 8, 8);
    key.low = (key.low ^ low) * 0x9e3779b97f4a7c15u;
    key.low ^= key.low >> 32;
    key.high = (key.high ^ high) * 0xc2b2ae3d27d4eb4fu;
    key.high ^= key.high >> 32;
  };
  for (size_t at = 0; at + kWhole < size; at += kWhole) add(bytes + at);
  add(bytes + size - kWhole);
  return key;
}

void WordCache::keep(size_t place, const Key& key, std::string_view text, Span word, std::span<const Piece> pieces) {
  if (pieces.size() > kLongestWord) return;
  if (pieces_.size() + pieces.size() > kMostPieces || long_bytes_.size() + word.size() > kMostLongBytes) {
    std::fill_n(places(), size_t{1} << kPlaceBits, Place());
    pieces_.clear();
    long_bytes_.clear();
  }
  Entry entry = {.low = key.low, .high = key.high, .size = static_cast<uint8_t>(key.size)};
  if (key.size > kWhole) {
    entry.long_bytes = static_cast<uint32_t>(long_bytes_.size());
    long_bytes_ += text.substr(word.begin, word.size());
  }
  entry.count = static_cast<uint8_t>(pieces.size());
  entry.whole = pieces.size() == 1 && pieces[0].span == word && !pieces[0].continues_word && !pieces[0].unknown;
  entry.first = entry.whole ? pieces[0].id : static_cast<uint32_t>(pieces_.size());
  for (const Piece& piece : pieces) {
    if (entry.whole) break;
    pieces_.push_back({piece.id, static_cast<uint8_t>(piece.span.begin - word.begin),
                       static_cast<uint8_t>(piece.span.end - word.begin), piece.continues_word, piece.unknown});
  }
  std::array<Entry, 2>& entries = places()[place].entries;
  entries = {entry, entries[0]};
}

std::unique_ptr<WordCache> WordCaches::take() {
  const std::scoped_lock lock(mutex_);
  if (free_.empty()) return std::make_unique<WordCache>();
  std::unique_ptr<WordCache> cache = std::move(free_.back());
  free_.pop_back();
  return cache;
}

void WordCaches::give_back(std::unique_ptr<WordCache> cache) {
  const std::scoped_lock lock(mutex_);
  free_.push_back(std::move(cache));
}

}  // namespace clearhead::text
