// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/bpe.h"

#include <fmt/format.h>

#include <algorithm>

#include "clearhead/base/error.h"
#include "clearhead/base/utf8.h"
#include "clearhead/text/byte_level.h"
#include "clearhead/text/valid_utf8.h"
#include "clearhead/text/word_cache.h"

namespace clearhead::text {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// Up to here the next merge is looked for among all neighbours, which is faster than a queue.
constexpr size_t kFewSymbols = 64;
constexpr size_t kLongWord = 16;  // bytes; a word of more that has several parts hardly comes again

void write(std::string_view bytes, std::string& written) {
  written.clear();
  for (const char byte : bytes) base::append_utf8(written, character_of_byte(static_cast<unsigned char>(byte)));
}

// place: what names the place in the file, asked only if something is wrong there.
template <class Place>
uint32_t required_id(const Vocabulary& vocabulary, std::string_view piece, const Place& place) {
  const auto id = vocabulary.id_of(piece);
  if (!id) base::fail(place(), "a piece of the vocabulary", base::quoted(piece));
  return *id;
}

}  // namespace

std::vector<Bpe::Merge> Bpe::in_order(const Vocabulary& vocabulary, const Merges& merges,
                                      std::string_view continuing_prefix, std::string_view where) {
  std::vector<Merge> result;
  result.reserve(merges.size());
  std::string whole;
  for (const auto& [left, right] : merges) {
    const auto rank = static_cast<uint32_t>(result.size());
    const auto place = [&] { return fmt::format("{} merges[{}]", where, rank); };
    const uint32_t left_id = required_id(vocabulary, left, place), right_id = required_id(vocabulary, right, place);
    whole = left;
    whole += right.substr(std::min(continuing_prefix.size(), right.size()));
    result.push_back({left_id, right_id, required_id(vocabulary, whole, place), rank});
  }
  return result;
}

Bpe::Bpe(Vocabulary vocabulary, std::span<const Merge> merges, Config config, std::string_view where)
    : vocabulary_(std::move(vocabulary)), merges_(merges.size()), config_(std::move(config)) {
  for (const std::string* part : {&config_.continuing_prefix, &config_.end_suffix}) {
    if (part->size() <= Vocabulary::kMaxPieceBytes) continue;
    base::fail(where,
               fmt::format("a prefix and a suffix of at most {} bytes, as pieces are", Vocabulary::kMaxPieceBytes),
               fmt::format("{} bytes", part->size()));
  }
  if (config_.unknown_piece) {
    unknown_id_ = required_id(vocabulary_, *config_.unknown_piece, [&] { return fmt::format("{} unk_token", where); });
  }
  for (const Merge& merge : merges) merges_.set(merge.left, merge.right, {merge.rank, merge.id});
  prepare_bytes();
  if (!config_.byte_fallback) return;
  for (int byte = 0; byte < 256; ++byte) byte_ids_.push_back(id_of(fmt::format("<0x{:02X}>", byte)).value_or(kNone));
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
// and what is dropped takes no room unless gaps are kept.
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
    } else if (add_bytes(character, symbols)) {
      continue;
    } else if (config_.unknown_piece) {
      if (!config_.fuse_unknown) add_waiting();
      waiting += length;
    } else if (config_.keep_gaps) {
      symbols.push_back({kNone, length, 0, 0, false});
    }
  }
  add_waiting();
}

void Bpe::merge(Room& room) const { room.symbols.size() <= kFewSymbols ? merge_few(room) : merge_many(room); }

void Bpe::merge_few(Room& room) const {
  std::vector<Symbol>& symbols = room.symbols;
  std::vector<MergeTable::Merge>& merges = room.merges;
  merges.clear();
  for (size_t i = 0; i + 1 < symbols.size(); ++i) merges.push_back(merges_.find(symbols[i].id, symbols[i + 1].id));
  while (!merges.empty()) {
    const auto best = std::ranges::min_element(merges, {}, &MergeTable::Merge::rank);
    if (best->rank == MergeTable::kNone) return;
    const auto place = best - merges.begin();
    const auto left = symbols.begin() + place;
    *left = {best->id, left->length + left[1].length, 0, 0, false};
    symbols.erase(left + 1);
    merges.erase(best);
    const auto at = static_cast<size_t>(place);
    if (at > 0) merges[at - 1] = merges_.find(symbols[at - 1].id, symbols[at].id);
    if (at < merges.size()) merges[at] = merges_.find(symbols[at].id, symbols[at + 1].id);
  }
}

void Bpe::merge_many(Room& room) const {
  std::vector<Symbol>& symbols = room.symbols;
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

void Bpe::add_pieces(Span word, const Room& room, std::vector<Piece>& pieces) const {
  uint32_t at = word.begin;
  for (const Symbol& symbol : room.symbols) {
    const Span span = {at, at + symbol.length};
    at = span.end;
    if (symbol.id == kNone) continue;  // a gap
    pieces.push_back(
        {.id = symbol.id, .span = span, .continues_word = span.begin > word.begin, .unknown = symbol.unknown});
  }
}

void Bpe::cut(std::string_view text, Span word, Room& room, std::vector<Piece>& pieces) const {
  const std::string_view bytes = text.substr(word.begin, word.size());
  if (config_.ignore_merges) {
    if (const auto id = id_of(bytes)) return pieces.push_back({.id = *id, .span = word});
  }
  begin(bytes, room.symbols);
  merge(room);
  add_pieces(word, room, pieces);
}

void Bpe::tokenize(std::string_view text, std::span<const Span> words, WordCache& cache,
                   std::vector<Piece>& pieces) const {
  Room room;
  for (const Span word : words) {
    cache.add(text, word, pieces, [&](Span own) { cut(text, own, room, pieces); });
  }
}

void Bpe::prepare_bytes() {
  constexpr size_t kCharacters = 0x200;  // all that bytes are written as are below
  std::array<std::optional<unsigned>, kCharacters> byte_of;
  std::string written;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    write({&c, 1}, written);
    written_ids_[byte] = id_of(written).value_or(kNone);
    byte_of[character_of_byte(static_cast<unsigned char>(byte))] = byte;
  }
  for (uint32_t id = 0; id < vocabulary_.size(); ++id) {
    const std::string_view piece = vocabulary_.piece_of(id);
    std::optional<unsigned> last;
    for (size_t at = 0; at < piece.size();) {
      const ValidCodePoint here = code_point_at(piece, at);
      const auto byte = here.value < kCharacters ? byte_of[here.value] : std::nullopt;
      if (last && byte) neighbours_.set(*last << 8 | *byte);
      last = byte;
      at += here.length;
    }
  }
}

// The word is written out, and spans are brought back from there.
void Bpe::cut_written(std::string_view text, Span word, Room& room, std::vector<Piece>& pieces) const {
  write(text.substr(word.begin, word.size()), room.written);
  std::vector<uint32_t> origin;  // [written] the byte of text
  for (size_t i = 0, at = word.begin; i < room.written.size(); ++at) {
    i += code_point_at(room.written, i).length;
    origin.resize(i, static_cast<uint32_t>(at));
  }
  const size_t first = pieces.size();
  cut(room.written, {0, static_cast<uint32_t>(room.written.size())}, room, pieces);
  for (size_t i = first; i < pieces.size(); ++i) {
    pieces[i].span = {origin[pieces[i].span.begin], origin[pieces[i].span.end - 1] + 1};
  }
}

size_t Bpe::left_out(std::string_view text) const {
  if (config_.unknown_piece || config_.byte_fallback) return 0;
  return static_cast<size_t>(std::ranges::count_if(text, [&](char byte) { return written_id(byte) == kNone; }));
}

// A word whose bytes all have pieces.
void Bpe::cut_bytes(std::string_view text, Span word, Room& room, std::vector<Piece>& pieces) const {
  room.symbols.clear();
  for (uint32_t at = word.begin; at < word.end; ++at) room.symbols.push_back({written_id(text[at]), 1, 0, 0, false});
  merge(room);
  add_pieces(word, room, pieces);
}

void Bpe::tokenize_bytes(std::string_view text, std::span<const Span> words, WordCache& cache,
                         std::vector<Piece>& pieces) const {
  Room room;
  const bool marked = !config_.continuing_prefix.empty() || !config_.end_suffix.empty();
  const auto byte = [&](uint32_t at) { return size_t{static_cast<unsigned char>(text[at])}; };
  // No piece crosses the end of a part, so that each is cut, and known from before, by itself.
  const auto part_from = [&](uint32_t begin, uint32_t word_end) {
    uint32_t end = begin + 1;
    while (end < word_end && neighbours_[byte(end - 1) << 8 | byte(end)]) ++end;
    return Span{begin, end};
  };
  const auto cut_word = [&](Span word) {
    const std::string_view bytes = text.substr(word.begin, word.size());
    const auto has_piece = [&](char c) { return written_id(c) != kNone; };
    if (marked || !std::ranges::all_of(bytes, has_piece)) return cut_written(text, word, room, pieces);
    if (config_.ignore_merges) {
      write(bytes, room.written);
      if (const auto id = id_of(room.written)) return pieces.push_back({.id = *id, .span = word});
    }
    const size_t first = pieces.size();
    for (Span part = {word.begin, word.begin}; part.end < word.end;) {
      part = part_from(part.end, word.end);
      if (part == word || config_.ignore_merges) {  // then a part is not cut as a word is
        cut_bytes(text, part, room, pieces);
      } else {
        cache.add(text, part, pieces, [&](Span own) { cut_bytes(text, own, room, pieces); });
      }
    }
    for (size_t i = first + 1; i < pieces.size(); ++i) pieces[i].continues_word = true;
  };
  for (const Span word : words) {
    // A clause without spaces hardly comes again, its parts do.
    const bool comes_again = word.size() <= kLongWord || part_from(word.begin, word.end) == word;
    comes_again ? cache.add(text, word, pieces, cut_word) : cut_word(word);
  }
}

}  // namespace clearhead::text
