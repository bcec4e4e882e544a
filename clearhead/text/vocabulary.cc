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
  if (entries.size() > kMaxBytes) {
    base::fail(where, fmt::format("at most {} pieces", kMaxBytes), fmt::format("{}", entries.size()));
  }
  const auto pieces = pieces_by_id(entries, where);
  count_ = entries.size();
  size_t all = 0;
  for (const auto& [piece, id] : entries) {
    if (piece.size() > kMaxPieceBytes) {
      base::fail(where, fmt::format("pieces of at most {} bytes", kMaxPieceBytes),
                 fmt::format("one of {} bytes: {}", piece.size(), base::quoted(piece)));
    }
    all += piece.size();
  }
  if (all > kMaxBytes) {
    base::fail(where, fmt::format("a smaller vocabulary, of at most {} bytes", kMaxBytes), fmt::format("{}", all));
  }
  bytes_.reserve(all);
  begins_.reserve(pieces.size() + 1);
  begins_.push_back(0);
  ids_ = TextIndex(count_);
  const auto given = [&](uint32_t id) { return *pieces[id]; };
  for (uint32_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id] && ids_.add(*pieces[id], id, given) != TextIndex::kNone) {
      base::fail(where, "each piece once", fmt::format("{} with id {}", base::quoted(*pieces[id]), id));
    }
    bytes_ += pieces[id].value_or("");
    begins_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
}

std::optional<uint32_t> Vocabulary::id_of(std::string_view piece) const {
  const uint32_t id = ids_.find(piece, [this](uint32_t other) { return piece_of(other); });
  if (id == TextIndex::kNone) return std::nullopt;
  return id;
}

}  // namespace clearhead::text
