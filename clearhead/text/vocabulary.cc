// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/vocabulary.h"

#include <fmt/format.h>

#include "clearhead/base/error.h"

namespace clearhead::text {
namespace {

// Ids that may have no piece: files in use leave out some dozens.
constexpr size_t kMaxHoles = size_t{1} << 20;

// By id; nothing where an id has no piece.
std::vector<std::optional<std::string_view>> pieces_by_id(
    std::span<const std::pair<std::string_view, uint64_t>> entries, std::string_view where) {
  std::vector<std::optional<std::string_view>> pieces(entries.size());
  for (const auto& [piece, id] : entries) {
    if (id >= entries.size() + kMaxHoles) {
      base::fail(where, fmt::format("ids 0 to {} for its {} pieces", entries.size() + kMaxHoles - 1, entries.size()),
                 fmt::format("id {} for {}", id, base::quoted(piece)));
    }
    if (id >= pieces.size()) pieces.resize(id + 1);
    if (pieces[id]) {
      base::fail(where, "each id once",
                 fmt::format("id {} for {} and {}", id, base::quoted(*pieces[id]), base::quoted(piece)));
    }
    pieces[id] = piece;
  }
  while (!pieces.empty() && !pieces.back()) pieces.pop_back();
  return pieces;
}

}  // namespace

Vocabulary::Vocabulary(std::span<const std::pair<std::string_view, uint64_t>> entries, std::string_view where) {
  if (entries.size() > Trie::kMaxNodes) {
    base::fail(where, fmt::format("at most {} pieces", Trie::kMaxNodes), fmt::format("{}", entries.size()));
  }
  const auto pieces = pieces_by_id(entries, where);
  begins_.reserve(pieces.size() + 1);
  begins_.push_back(0);
  for (uint32_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id]) add(*pieces[id], id, where);
    begins_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
}

void Vocabulary::add(std::string_view piece, uint32_t id, std::string_view where) {
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
  ++count_;
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
