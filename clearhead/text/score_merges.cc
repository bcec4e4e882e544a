// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/score_merges.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "clearhead/base/error.h"
#include "clearhead/text/trie.h"

namespace clearhead::text {
namespace {

// All pieces, last byte first if backwards.
Trie trie_of(const Vocabulary& vocabulary, bool backwards, std::string_view where) {
  Trie trie;
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    std::string piece(vocabulary.piece_of(id));
    if (backwards) std::ranges::reverse(piece);
    if (!trie.add(piece, id)) {
      base::fail(where, "a smaller vocabulary", fmt::format("{} with id {}", base::quoted(piece), id));
    }
  }
  return trie;
}

// Which pieces a piece ends with, as it is walked from its end.
class Endings {
 public:
  Endings(const Vocabulary& vocabulary, std::string_view where) : trie_(trie_of(vocabulary, true, where)) {}

  // ids[i]: the piece that is text from byte i on, kNone if there is none.  Shapes: [text]
  const std::vector<uint32_t>& of(std::string_view text) {
    ids_.assign(text.size(), Trie::kNone);
    uint32_t node = Trie::kRoot;
    for (size_t at = text.size(); at > 0;) {
      node = trie_.step(node, text[--at]);
      if (node == Trie::kNone) break;
      ids_[at] = trie_.value(node);
    }
    return ids_;
  }

 private:
  Trie trie_;
  std::vector<uint32_t> ids_;
};

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

}  // namespace

std::vector<Bpe::Merge> merges_by_score(const Vocabulary& vocabulary, const GgufPieces& pieces,
                                        std::string_view where) {
  const Trie beginnings = trie_of(vocabulary, false, where);
  Endings endings(vocabulary, where);
  std::vector<Bpe::Merge> merges;
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    if (pieces.types[id] == kControlToken || pieces.types[id] == kUserDefinedToken) continue;
    const std::string_view piece = vocabulary.piece_of(id);
    const std::vector<uint32_t>& ends = endings.of(piece);
    uint32_t node = Trie::kRoot;
    for (size_t cut = 1; cut < piece.size(); ++cut) {
      node = beginnings.step(node, piece[cut - 1]);
      const uint32_t left = beginnings.value(node), right = ends[cut];
      if (left != Trie::kNone && right != Trie::kNone && begins_character(piece[cut])) {
        merges.push_back({.left = left, .right = right, .id = id, .rank = 0});
      }
    }
    if (merges.size() > kMaxScoreMerges) {
      base::fail(where, fmt::format("at most {} ways to put pieces together from two others", kMaxScoreMerges),
                 fmt::format("more up to token {} of {}", id, vocabulary.size()));
    }
  }
  const auto score = [&](const Bpe::Merge& merge) { return pieces.scores[merge.id]; };
  std::ranges::stable_sort(merges, std::ranges::greater(), score);
  for (size_t i = 1; i < merges.size(); ++i) {
    merges[i].rank = merges[i - 1].rank + (score(merges[i]) != score(merges[i - 1]));
  }
  return merges;
}

}  // namespace clearhead::text
