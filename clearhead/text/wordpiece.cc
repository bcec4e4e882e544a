// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/wordpiece.h"

#include <algorithm>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/text/word_cache.h"

namespace clearhead::text {

WordPiece::WordPiece(Vocabulary vocabulary, Config config, std::string_view where)
    : vocabulary_(std::move(vocabulary)), short_pieces_(vocabulary_.size()), config_(std::move(config)) {
  static_assert(Vocabulary::kMaxPieceBytes <= Trie::kMaxStringBytes && Vocabulary::kMaxBytes < 2 * Trie::kMaxNodes);
  for (uint32_t i = 0; i < vocabulary_.size(); ++i) {
    short_pieces_.add(vocabulary_.piece_of(i), i);
    trie_.add(vocabulary_.piece_of(i), i);
  }
  const std::optional<uint32_t> id = vocabulary_.id_of(config_.unknown_piece);
  if (!id) base::fail(where, "unk_token to be in the vocabulary", base::quoted(config_.unknown_piece));
  unknown_id_ = *id;
  continuing_node_ = trie_.walk(config_.continuing_prefix);
}

void WordPiece::tokenize(std::string_view text, std::span<const Span> words, WordCache& cache,
                         std::vector<Piece>& pieces) const {
  for (const Span span : words) {
    const std::string_view word = text.substr(span.begin, span.size());
    if (word.size() <= config_.max_word_code_points) {
      if (const std::optional<uint32_t> id = short_pieces_.find(word)) {
        pieces.push_back({.id = *id, .span = span});
        continue;
      }
    }
    cache.add(text, span, pieces, [&](Span own) {
      const size_t before = pieces.size();
      if (!too_long(word) && cut(word, own.begin, pieces)) return;
      pieces.resize(before);
      pieces.push_back({.id = unknown_id_, .span = own, .unknown = true});
    });
  }
}

bool WordPiece::too_long(std::string_view word) const {
  if (word.size() <= config_.max_word_code_points) return false;
  const auto starts_code_point = [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; };
  return static_cast<size_t>(std::ranges::count_if(word, starts_code_point)) > config_.max_word_code_points;
}

bool WordPiece::cut(std::string_view word, uint32_t begin, std::vector<Piece>& pieces) const {
  uint32_t node = Trie::kRoot;
  for (size_t at = 0; at < word.size();) {
    if (node == Trie::kNone) return false;
    const std::optional<Trie::Match> match = trie_.longest(word.substr(at), node);
    if (!match) return false;
    const auto from = static_cast<uint32_t>(begin + at);
    const Span span = {from, from + static_cast<uint32_t>(match->length)};
    pieces.push_back({.id = match->value, .span = span, .continues_word = at > 0});
    at += match->length;
    node = continuing_node_;
  }
  return true;
}

}  // namespace clearhead::text
