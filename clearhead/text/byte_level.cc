// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/byte_level.h"

#include <algorithm>
#include <array>

#include "clearhead/base/utf8.h"
#include "clearhead/text/rewriter.h"
#include "clearhead/text/unicode.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

constexpr char32_t kFirstShifted = 0x100, kShiftedCount = 68;

bool is_kept(unsigned byte) { return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad); }

// [256]
const std::array<char32_t, 256>& byte_characters() {
  static const std::array<char32_t, 256> table = [] {
    std::array<char32_t, 256> characters{};
    char32_t next = kFirstShifted;
    for (unsigned byte = 0; byte < 256; ++byte) characters[byte] = is_kept(byte) ? byte : next++;
    return characters;
  }();
  return table;
}

// The byte that a character stands for, or -1.
int byte_of_character(char32_t c) {
  static const std::array<int, kFirstShifted + kShiftedCount> table = [] {
    std::array<int, kFirstShifted + kShiftedCount> bytes;
    bytes.fill(-1);
    for (int byte = 0; byte < 256; ++byte) bytes[byte_characters()[static_cast<size_t>(byte)]] = byte;
    return bytes;
  }();
  return c < table.size() ? table[c] : -1;
}

void append_written(std::string_view bytes, std::string& result) {
  for (const char byte : bytes) base::append_utf8(result, byte_characters()[static_cast<unsigned char>(byte)]);
}

// Appends the bytes of a word, each as its character.
void write_word(const AlignedText& text, Span word, AlignedText& result) {
  const std::string_view bytes = text.bytes();
  std::string written;
  for (uint32_t at = word.begin; at < word.end;) {
    uint32_t end = at;
    while (end < word.end && static_cast<unsigned char>(bytes[end]) < 0x7f && bytes[end] > ' ') ++end;
    if (end > at) result.keep(bytes.substr(at, end - at), text, at);
    at = end;
    if (at == word.end) break;
    end += static_cast<uint32_t>(code_point_at(bytes, at).length);
    written.clear();
    append_written(bytes.substr(at, end - at), written);
    result.replace(written, text.original({at, end}));
    at = end;
  }
}

// One piece comes out of all, in parts that end with whole characters.
class ByteLevelStep final : public PieceStep {
 public:
  using PieceStep::PieceStep;

 private:
  void take(std::string piece) override {
    const size_t before = bytes_.size();
    for (size_t at = 0; at < piece.size();) {
      const ValidCodePoint here = code_point_at(piece, at);
      const int byte = byte_of_character(here.value);
      if (byte < 0) {  // not written so: a special token
        bytes_.resize(before);
        bytes_ += piece;
        break;
      }
      bytes_ += static_cast<char>(byte);
      at += here.length;
    }
    hand_on(false);
  }

  void end() override {
    hand_on(true);
    next().end_piece();
  }

  // Without `all`, what may be the beginning of a character stays.
  void hand_on(bool all) {
    std::string text;
    size_t at = 0;
    while (at < bytes_.size()) {
      const base::CodePoint here = base::decode_utf8(std::string_view(bytes_).substr(at));
      const bool is_lead = static_cast<unsigned char>(bytes_[at]) >= 0xc0;
      if (!all && !here.valid && is_lead && at + here.length == bytes_.size()) break;
      base::append_utf8(text, here.value);
      at += here.length;
    }
    bytes_.erase(0, at);
    if (!text.empty()) next().add(text);
  }

  std::string bytes_;
};

bool is_space(char32_t c) { return c == byte_characters()[' '] || is_white_space(c); }

// How far `count` characters go from the front of the span, not beyond its end.
uint32_t end_of_first(std::string_view text, Span span, uint32_t count) {
  uint32_t at = span.begin;
  for (; count > 0 && at < span.end; --count) at += static_cast<uint32_t>(base::decode_utf8(text.substr(at)).length);
  return std::min(at, span.end);
}

// Where the last `count` characters of the span begin, not before it does.
uint32_t begin_of_last(std::string_view text, Span span, uint32_t count) {
  uint32_t at = span.end;
  for (; count > 0 && at > span.begin; --count) at -= static_cast<uint32_t>(base::last_utf8_length(text.substr(0, at)));
  return std::max(at, span.begin);
}

bool has_characters(std::string_view text, uint32_t count) {
  constexpr size_t kMostBytes = 4;  // of a character
  size_t at = 0;
  if (text.size() / kMostBytes >= count) return true;
  for (; count > 0 && at < text.size(); --count) at += base::decode_utf8(text.substr(at)).length;
  return count == 0;
}

}  // namespace

ByteLevel::ByteLevel(bool add_prefix_space, bool use_regex)
    : add_prefix_space_(add_prefix_space), words_(use_regex ? gpt2_pattern() : nullptr) {}

char32_t character_of_byte(unsigned char byte) { return byte_characters()[byte]; }

void ByteLevel::split_unwritten(AlignedText& text, std::vector<Span>& words) const {
  if (!words_) {
    std::erase_if(words, [](Span word) { return word.size() == 0; });
    return;
  }
  std::vector<Span> cut;
  cut.reserve(words.size() + text.bytes().size() / 4);
  for (const Span word : words) {
    for_each_part(*words_, text.bytes(), word, [&](Span part, bool) { cut.push_back(part); });
  }
  words.swap(cut);
}

void ByteLevel::split(AlignedText& text, std::vector<Span>& words) const {
  AlignedText spaced = text.empty_like(), result = text.empty_like();
  if (add_prefix_space_) {
    for (Span& word : words) {
      const auto begin = static_cast<uint32_t>(spaced.bytes().size());
      const std::string_view bytes = text.bytes().substr(word.begin, word.size());
      if (!bytes.empty() && bytes[0] != ' ') {
        const auto first = static_cast<uint32_t>(code_point_at(bytes, 0).length);
        spaced.replace(" ", text.original({word.begin, word.begin + first}));
      }
      spaced.keep(bytes, text, word.begin);
      word = {begin, static_cast<uint32_t>(spaced.bytes().size())};
    }
    text = std::move(spaced);
  }
  std::vector<Span> cut;
  cut.reserve(words.size() + text.bytes().size() / 4);
  result.reserve(text.bytes().size() + text.bytes().size() / 2);
  const auto add = [&](Span word, bool) {
    const auto begin = static_cast<uint32_t>(result.bytes().size());
    write_word(text, word, result);
    cut.push_back({begin, static_cast<uint32_t>(result.bytes().size())});
  };
  for (const Span word : words) {
    if (word.size() == 0) continue;
    words_ ? for_each_part(*words_, text.bytes(), word, add) : add(word, true);
  }
  text = std::move(result);
  words.swap(cut);
}

void ByteLevelNormalizer::normalize(const AlignedText& source, AlignedText& result) const {
  write_word(source, {0, static_cast<uint32_t>(source.bytes().size())}, result);
}

SpaceAround space_around(std::string_view piece) {
  SpaceAround around;
  for (size_t at = 0; at < piece.size() && is_space(code_point_at(piece, at).value); ++around.before) {
    at += code_point_at(piece, at).length;
  }
  for (size_t end = piece.size(); end > 0 && is_space(code_point_before(piece, end).value); ++around.after) {
    end -= code_point_before(piece, end).length;
  }
  return around;
}

void TrimOffsets::process(std::vector<Piece>& pieces, const Original& original, bool) const {
  if (!original) return;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (piece.special) continue;
    const SpaceAround space =
        piece.added ? SpaceAround{piece.space_before, piece.space_after} : space_around(model_.piece_of(piece.id));
    Span& span = pieces[i].span;
    const bool put_in = add_prefix_space_ && space.before == 1 && (i == 0 || span.begin == 0);
    if (!put_in) span.begin = end_of_first(*original, span, space.before);
    // As in the library, a piece with more white space than there is text up to its end keeps it.
    if (has_characters(original->substr(0, span.end), space.after)) {
      span.end = begin_of_last(*original, span, space.after);
    }
  }
}

NextSink ByteLevelDecoder::stream(NextSink next) const { return std::make_unique<ByteLevelStep>(std::move(next)); }

}  // namespace clearhead::text
