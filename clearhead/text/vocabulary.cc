// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/vocabulary.h"

#include <fmt/format.h>

#include "clearhead/base/error.h"

namespace clearhead::text {
namespace {

// [entries], by id
std::vector<std::string_view> pieces_by_id(std::span<const std::pair<std::string_view, uint64_t>> entries,
                                           std::string_view where) {
  std::vector<std::string_view> pieces(entries.size());
  std::vector<bool> seen(entries.size());
  for (const auto& [piece, id] : entries) {
    if (id >= entries.size()) {
      base::fail(where, fmt::format("ids 0 to {} for its {} pieces", entries.size() - 1, entries.size()),
                 fmt::format("id {} for {}", id, base::quoted(piece)));
    }
    if (seen[id]) {
      base::fail(where, "each id once",
                 fmt::format("id {} for {} and {}", id, base::quoted(pieces[id]), base::quoted(piece)));
    }
    seen[id] = true;
    pieces[id] = piece;
  }
  return pieces;
}

}  // namespace

Vocabulary::Vocabulary(std::span<const std::pair<std::string_view, uint64_t>> entries, std::string_view where) {
  if (entries.size() > Trie::kMaxNodes) {
    base::fail(where, fmt::format("at most {} pieces", Trie::kMaxNodes), fmt::format("{}", entries.size()));
  }
  begins_.reserve(entries.size() + 1);
  begins_.push_back(0);
  for (const std::string_view piece : pieces_by_id(entries, where)) {
    const auto id = static_cast<uint32_t>(begins_.size() - 1);
    if (piece.size() > Trie::kMaxStringBytes) {
      base::fail(where, fmt::format("pieces of at most {} bytes", Trie::kMaxStringBytes),
                 fmt::format("one of {} bytes: {}", piece.size(), base::quoted(piece)));
    }
    if (!trie_.add(piece, id)) {
      const bool twice = id_of(piece).has_value();
      base::fail(where, twice ? "each piece once" : "a smaller vocabulary",
                 fmt::format("{} with id {}", base::quoted(piece), id));
    }
    bytes_ += piece;
    begins_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
}

std::optional<uint32_t> Vocabulary::id_of(std::string_view piece) const {
  const uint32_t node = trie_.walk(piece);
  if (node == Trie::kNone || trie_.value(node) == Trie::kNone) return std::nullopt;
  return trie_.value(node);
}

std::string_view Vocabulary::piece_of(uint32_t id) const {
  return std::string_view(bytes_).substr(begins_[id], begins_[id + 1] - begins_[id]);
}

}  // namespace clearhead::text
