// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/bpe.h"

#include <fmt/format.h>

#include <algorithm>

#include "clearhead/base/error.h"
#include "clearhead/text/valid_utf8.h"
#include "clearhead/text/word_memo.h"

namespace clearhead::text {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// Up to here the next merge is looked for among all neighbours, which is faster than a queue.
constexpr size_t kFewSymbols = 24;

}  // namespace

Bpe::Bpe(Vocabulary vocabulary, const Merges& merges, Config config, std::string_view where)
    : vocabulary_(std::move(vocabulary)),
      short_pieces_(vocabulary_.size()),
      merges_(merges.size()),
      config_(std::move(config)) {
  for (uint32_t i = 0; i < vocabulary_.size(); ++i) short_pieces_.add(vocabulary_.piece_of(i), i);
  const auto required = [&](std::string_view piece, const std::string& place) {
    const auto id = id_of(piece);
    if (!id) base::fail(place, "a piece of the vocabulary", base::quoted(piece));
    return *id;
  };
  if (config_.unknown_piece) {
    unknown_id_ = required(*config_.unknown_piece, fmt::format("{} unk_token", where));
  }
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const std::string place = fmt::format("{} merges[{}]", where, rank);
    const uint32_t left_id = required(left, place), right_id = required(right, place);
    // A prefix is not repeated inside a piece.
    const size_t prefix = std::min(config_.continuing_prefix.size(), right.size());
    const uint32_t id = required(left + right.substr(prefix), place);
    merges_.set(left_id, right_id, {static_cast<uint32_t>(rank), id});
  }
  if (!config_.byte_fallback) return;
  for (int byte = 0; byte < 256; ++byte) byte_ids_.push_back(id_of(fmt::format("<0x{:02X}>", byte)).value_or(kNone));
}

std::optional<uint32_t> Bpe::id_of(std::string_view piece) const {
  return piece.size() <= ShortPieces::kMaxBytes && !piece.empty() ? short_pieces_.find(piece)
                                                                  : vocabulary_.id_of(piece);
}

bool Bpe::add_bytes(std::string_view character, std::vector<Symbol>& symbols) const {
  const auto id_of_byte = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
  if (byte_ids_.empty() || !std::ranges::all_of(character, [&](char byte) { return id_of_byte(byte) != kNone; })) {
    return false;
  }
  for (const char byte : character) symbols.push_back({id_of_byte(byte), 1, 0, 0, false});
  return true;
}

// The characters of a word. As in the library, an unknown one waits for what comes next, so that bytes go before it,
// and what is dropped takes no room.
void Bpe::begin(std::string_view word, std::vector<Symbol>& symbols) const {
  symbols.clear();
  uint32_t waiting = 0;  // bytes of an unknown piece
  const auto add_waiting = [&] {
    if (waiting > 0) symbols.push_back({unknown_id_, waiting, 0, 0, true});
    waiting = 0;
  };
  const bool dressed = !config_.continuing_prefix.empty() || !config_.end_suffix.empty();
  std::string full;
  for (size_t at = 0; at < word.size();) {
    const auto length = static_cast<uint32_t>(code_point_at(word, at).length);
    std::string_view character = word.substr(at, length);
    if (dressed) {
      full = at > 0 ? config_.continuing_prefix : "";
      full += character;
      if (at + length == word.size()) full += config_.end_suffix;
      character = full;
    }
    at += length;
    if (const auto id = id_of(character)) {
      add_waiting();
      symbols.push_back({*id, length, 0, 0, false});
    } else if (!add_bytes(character, symbols) && config_.unknown_piece) {
      if (!config_.fuse_unknown) add_waiting();
      waiting += length;
    }
  }
  add_waiting();
}

void Bpe::merge(Room& room) const {
  std::vector<Symbol>& symbols = room.symbols;
  while (symbols.size() > 1 && symbols.size() <= kFewSymbols) {
    MergeTable::Merge best = {MergeTable::kNone, 0};
    size_t place = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const MergeTable::Merge merge = merges_.find(symbols[i].id, symbols[i + 1].id);
      if (merge.rank < best.rank) best = merge, place = i;
    }
    if (best.rank == MergeTable::kNone) return;
    symbols[place] = {best.id, symbols[place].length + symbols[place + 1].length, 0, 0, false};
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
  if (symbols.size() <= 1) return;

  const auto later = [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.place > b.place;
  };
  std::vector<Candidate>& queue = room.queue;
  queue.clear();
  const auto consider = [&](uint32_t left, uint32_t right) {
    const MergeTable::Merge merge = merges_.find(symbols[left].id, symbols[right].id);
    if (merge.rank == MergeTable::kNone) return;
    queue.push_back({merge.rank, left, merge.id});
    std::ranges::push_heap(queue, later);
  };
  const auto count = static_cast<uint32_t>(symbols.size());
  for (uint32_t i = 0; i < count; ++i) {
    symbols[i].before = i == 0 ? kNone : i - 1;
    symbols[i].after = i + 1 == count ? kNone : i + 1;
  }
  for (uint32_t i = 0; i + 1 < count; ++i) consider(i, i + 1);
  while (!queue.empty()) {
    const Candidate next = queue.front();
    std::ranges::pop_heap(queue, later);
    queue.pop_back();
    Symbol& left = symbols[next.place];
    if (left.length == 0 || left.after == kNone) continue;
    Symbol& right = symbols[left.after];
    const MergeTable::Merge merge = merges_.find(left.id, right.id);
    if (merge.rank == MergeTable::kNone || merge.id != next.id) continue;  // one of the two has changed since
    left.id = next.id;
    left.length += right.length;
    left.after = right.after;
    left.unknown = false;
    right.length = 0;
    if (left.after != kNone) symbols[left.after].before = next.place;
    if (left.before != kNone) consider(left.before, next.place);
    if (left.after != kNone) consider(next.place, left.after);
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.length == 0; });
}

void Bpe::cut(std::string_view text, Span word, Room& room, std::vector<Piece>& pieces) const {
  const std::string_view bytes = text.substr(word.begin, word.size());
  if (config_.ignore_merges) {
    if (const auto id = id_of(bytes)) return pieces.push_back({.id = *id, .span = word});
  }
  begin(bytes, room.symbols);
  merge(room);
  uint32_t at = word.begin;
  for (const Symbol& symbol : room.symbols) {
    pieces.push_back({.id = symbol.id,
                      .span = {at, at + symbol.length},
                      .continues_word = at > word.begin,
                      .unknown = symbol.unknown});
    at += symbol.length;
  }
}

void Bpe::tokenize(std::string_view text, std::span<const Span> words, std::vector<Piece>& pieces) const {
  Room room;
  WordMemo memo(text, words.size(), pieces);
  for (const Span word : words) {
    memo.add(word, [&](Span own) { cut(text, own, room, pieces); });
  }
}

}  // namespace clearhead::text
