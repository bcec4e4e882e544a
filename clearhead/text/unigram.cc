// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "clearhead/base/error.h"
#include "clearhead/text/valid_utf8.h"
#include "clearhead/text/word_cache.h"

namespace clearhead::text {
namespace {

constexpr double kUnknownPenalty = 10;
constexpr uint32_t kNotReached = UINT32_MAX;

size_t bytes_of(const std::vector<std::pair<std::string_view, double>>& pieces) {
  size_t sum = 0;
  for (const auto& [piece, score] : pieces) sum += piece.size();
  return sum;
}

}  // namespace

Unigram::Unigram(std::vector<std::pair<std::string_view, double>> pieces, const Config& config, std::string_view where)
    : trie_(bytes_of(pieces) / 4) {
  if (!config.unknown_id) base::fail(where, "unk_id, the piece that stands for unknown text", "none");
  if (*config.unknown_id >= pieces.size()) {
    base::fail(where, fmt::format("unk_id below {}, the number of pieces", pieces.size()),
               fmt::format("{}", *config.unknown_id));
  }
  unknown_id_ = static_cast<uint32_t>(*config.unknown_id);
  scores_.reserve(pieces.size());
  begins_.reserve(pieces.size() + 1);
  begins_.push_back(0);
  bytes_.reserve(bytes_of(pieces));
  double smallest = std::numeric_limits<double>::infinity();
  for (const auto& [piece, score] : pieces) {
    const auto id = static_cast<uint32_t>(scores_.size());
    if (!config.unmatched.empty() && config.unmatched[id]) {
      unmatched_ids_.emplace(piece, id);
    } else if (!piece.empty() && !trie_.set(piece, id)) {
      base::fail(where,
                 fmt::format("pieces of at most {} characters and {} characters in all", CodePointTrie::kMaxLength,
                             CodePointTrie::kMaxNodes),
                 fmt::format("more at piece {}", scores_.size()));
    }
    scores_.push_back(score);
    bytes_ += piece;
    begins_.push_back(bytes_.size());
    smallest = std::min(smallest, score);
  }
  unknown_score_ = config.smallest_score.value_or(smallest) - kUnknownPenalty;
  if (!config.byte_fallback) return;
  for (int byte = 0; byte < 256; ++byte) byte_ids_.push_back(trie_.find(fmt::format("<0x{:02X}>", byte)));
}

std::optional<uint32_t> Unigram::id_of(std::string_view piece) const {
  const uint32_t id = trie_.find(piece);
  if (id != CodePointTrie::kNone) return id;
  const auto unmatched = unmatched_ids_.find(std::string(piece));
  if (unmatched == unmatched_ids_.end()) return std::nullopt;
  return unmatched->second;
}

std::string_view Unigram::piece_of(uint32_t id) const {
  return std::string_view(bytes_).substr(begins_[id], begins_[id + 1] - begins_[id]);
}

void Unigram::find_best(std::string_view word, std::vector<Best>& best) const {
  best.assign(word.size() + 1, {0, kNotReached, 0});
  for (size_t begin = 0; begin < word.size();) {
    const double so_far = best[begin].score;
    const auto reach = [&](size_t end, double score, uint32_t id) {
      Best& there = best[end];
      if (there.begin == kNotReached || so_far + score > there.score) {
        there = {so_far + score, static_cast<uint32_t>(begin), id};
      }
    };
    const ValidCodePoint first = code_point_at(word, begin);
    const size_t next = begin + first.length;
    CodePointTrie::Step at = trie_.step(CodePointTrie::kRoot, first.value);
    const bool known = at.value != CodePointTrie::kNone;
    for (size_t end = next; at.node != CodePointTrie::kNone;) {
      if (at.value != CodePointTrie::kNone) reach(end, scores_[at.value], at.value);
      if (end == word.size()) break;
      const ValidCodePoint here = code_point_at(word, end);
      at = trie_.step(at.node, here.value);
      end += here.length;
    }
    if (!known) reach(next, unknown_score_, unknown_id_);
    begin = next;
  }
}

void Unigram::add_unknown(std::string_view text, Span span, std::vector<Piece>& pieces) const {
  const std::string_view unknown = text.substr(span.begin, span.size());
  const uint32_t id = trie_.find(unknown);
  if (id != CodePointTrie::kNone) {  // unknown code points may together be a piece that scored less
    return pieces.push_back({.id = id, .span = span, .unknown = id == unknown_id_});
  }
  const auto id_of_byte = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
  const auto has_byte = [&](char byte) { return id_of_byte(byte) != CodePointTrie::kNone; };
  if (byte_ids_.empty() || !std::ranges::all_of(unknown, has_byte)) {
    return pieces.push_back({.id = unknown_id_, .span = span, .unknown = true});
  }
  for (const char byte : unknown) pieces.push_back({.id = id_of_byte(byte), .span = span});
}

void Unigram::cut(std::string_view text, Span word, std::vector<Best>& best, std::vector<Piece>& pieces) const {
  find_best(text.substr(word.begin, word.size()), best);
  // The way back, in place: best[i].id becomes the place that comes after i.
  auto place = static_cast<uint32_t>(word.size());
  for (uint32_t after = place; place > 0;) {
    const uint32_t before = best[place].begin;
    best[place].begin = after;
    after = place;
    place = before;
    if (place == 0) best[0].begin = after;
  }
  for (uint32_t begin = 0; begin < word.size();) {
    uint32_t end = best[begin].begin;
    const uint32_t id = best[end].id;
    const size_t first = pieces.size();
    if (id == unknown_id_) {
      while (end < word.size() && best[best[end].begin].id == unknown_id_) end = best[end].begin;
      add_unknown(text, {word.begin + begin, word.begin + end}, pieces);
    } else {
      pieces.push_back({.id = id, .span = {word.begin + begin, word.begin + end}});
    }
    for (size_t i = first; i < pieces.size(); ++i) {
      pieces[i].continues_word = i > first || begin > 0;
    }
    begin = end;
  }
}

void Unigram::tokenize(std::string_view text, std::span<const Span> words, WordCache& cache,
                       std::vector<Piece>& pieces) const {
  std::vector<Best> best;
  for (const Span word : words) {
    cache.add(text, word, pieces, [&](Span own) { cut(text, own, best, pieces); });
  }
}

}  // namespace clearhead::text
