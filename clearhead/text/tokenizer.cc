// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/tokenizer.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <unordered_map>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/base/memory.h"
#include "clearhead/base/utf8.h"
#include "clearhead/text/byte_level.h"
#include "clearhead/text/regex.h"
#include "clearhead/text/tokenizer_json.h"
#include "clearhead/text/unicode.h"
#include "clearhead/text/word.h"
#include "clearhead/text/word_cache.h"

namespace clearhead::text {
namespace {

// Far above any vocabulary in use (the largest known file has 33 MB).
constexpr size_t kMaxFileBytes = size_t{256} << 20;

// What people read of a token: its stretch of the text without the white space before it. A mark for a space that was
// put in has a stretch that belongs to the next token; it is shown as itself.
std::string_view shown_text(std::string_view stretch, std::string_view piece) {
  constexpr std::string_view kSpaceMark = "\xe2\x96\x81";
  size_t begin = 0;
  while (begin < stretch.size()) {
    const base::CodePoint here = base::decode_utf8(stretch.substr(begin));
    if (!is_white_space(here.value)) break;
    begin += here.length;
  }
  if (begin == stretch.size()) return stretch;
  return piece == kSpaceMark ? kSpaceMark : stretch.substr(begin);
}

// Unknown characters side by side may become thousands of bytes, each of which stands for all of them: one of a stretch
// longer than this shows its piece, as the stretch for each would take the square of the text.
constexpr size_t kMostSharedBytes = 64;

// All added tokens that want it go through the normalizer when a file is read. Bytes of all of them, and what one may
// become on its way: Unicode's own forms make at most 18 of one.
constexpr size_t kMaxNormalizedTokenBytes = size_t{512} << 10;
constexpr size_t kMaxTokenGrowth = 18, kFreeTokenBytes = 64;

// A piece of some bytes of a character stands for all of it. text must be valid UTF-8.
Span whole_characters(std::string_view text, Span span) {
  const auto within = [&](uint32_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  while (within(span.begin)) --span.begin;
  while (within(span.end)) ++span.end;
  return span;
}

// The text to tokenize; invalid sequences stand replaced but know the bytes that they came from.
AlignedText valid_source(std::string_view text, bool tracked) {
  if (simdjson::validate_utf8(text.data(), text.size())) {
    return tracked ? AlignedText(text, 0) : AlignedText::untracked(text);
  }
  if (!tracked) {
    return AlignedText::untracked(base::valid_utf8(text));
  }
  const AlignedText original(text, 0);
  AlignedText result = original.empty_like();
  for (size_t at = 0; at < text.size();) {
    const auto begin = static_cast<uint32_t>(at);
    size_t end = at;
    base::CodePoint here{};
    while (end < text.size() && (here = base::decode_utf8(text.substr(end))).valid) end += here.length;
    result.keep(text.substr(at, end - at), original, begin);
    at = end;
    if (at == text.size()) break;
    result.replace("\xef\xbf\xbd", {static_cast<uint32_t>(at), static_cast<uint32_t>(at + here.length)});
    at += here.length;
  }
  return result;
}

}  // namespace

class Tokenizer::Impl {
 public:
  Impl(TokenizerParts parts, std::string_view where) : parts_(std::move(parts)) {
    const RegexTime all_tokens;
    size_t normalized_bytes = 0;
    for (size_t i = 0; i < parts_.added.size(); ++i) {
      const AddedToken& token = parts_.added[i];
      added_by_id_.insert_or_assign(token.id, i);
      shares_ids_ |= token.id < parts_.model->size() && parts_.model->piece_of(token.id) != token.content;
      added_by_content_.emplace(token.content, i);
      if (token.normalized && (normalized_bytes += token.content.size()) > kMaxNormalizedTokenBytes) {
        base::fail(fmt::format("{} added_tokens", where),
                   fmt::format("at most {} bytes of tokens that are normalized", kMaxNormalizedTokenBytes), "more");
      }
      const AlignedText pattern = pattern_of(token, where);
      AddedTokenFinder& finder = token.normalized ? normalized_finder_ : raw_finder_;
      if (!finder.add(token, pattern.bytes())) {
        base::fail(fmt::format("{} added_tokens", where),
                   fmt::format("at most {} bytes when normalized", Trie::kMaxStringBytes), base::quoted(token.content));
      }
    }
  }

  const TokenizerParts& parts() const { return parts_; }

  // encoding: what is counted beside the pieces; without it they do not know their places in the text.
  std::vector<Piece> pieces_of(std::string_view text, bool add_special, Encoding* encoding) const {
    if (text.size() > kMaxTextBytes) {
      base::refuse("text", fmt::format("at most {} bytes", kMaxTextBytes), fmt::format("{}", text.size()));
    }
    std::vector<Piece> pieces;
    pieces.reserve(text.size() / 4 + 8);
    const RegexTime one_text;
    const WordCaches::Loan cache(caches_);
    const bool tracked = encoding != nullptr || (parts_.pre_tokenizer && parts_.pre_tokenizer->asks_origins());
    cut_raw(valid_source(text, tracked), {*cache, pieces, encoding});
    if (parts_.post_processor) {
      const auto original = encoding != nullptr ? std::optional(text) : std::nullopt;
      parts_.post_processor->process(pieces, original, add_special);
    }
    return pieces;
  }

  std::optional<uint32_t> id_of(std::string_view piece) const {
    const auto added = added_by_content_.find(std::string(piece));
    if (added != added_by_content_.end()) return parts_.added[added->second].id;
    return parts_.model->id_of(piece);
  }

  // The added token of an id, or nullptr.
  const AddedToken* added(uint32_t id) const {
    const auto found = added_by_id_.find(id);
    return found == added_by_id_.end() ? nullptr : &parts_.added[found->second];
  }

  std::string_view piece_of(uint32_t id) const {
    if (id < parts_.model->size() && !shares_ids_) return parts_.model->piece_of(id);
    const AddedToken* token = added(id);
    if (token != nullptr) return token->content;
    return id < parts_.model->size() ? parts_.model->piece_of(id) : std::string_view();
  }

  uint32_t checked(int64_t id) const {
    if (id < 0 || static_cast<uint64_t>(id) >= parts_.vocab_size) {
      base::refuse("token id", fmt::format("0 to {}", parts_.vocab_size - 1), fmt::format("{}", id));
    }
    return static_cast<uint32_t>(id);
  }

 private:
  // Where the pieces of a text go.
  struct Goal {
    WordCache& cache;
    std::vector<Piece>& pieces;
    Encoding* encoding;
  };

  AlignedText normalized(AlignedText source) const {
    if (!parts_.normalizer) return source;
    AlignedText result = source.empty_like();
    parts_.normalizer->normalize(source, result);
    return result;
  }

  static void add_found(const AlignedText& text, const Stretch& stretch, const Goal& goal) {
    const SpaceAround space = space_around(text.bytes().substr(stretch.span.begin, stretch.span.size()));
    goal.pieces.push_back({.id = *stretch.id,
                           .span = text.original(stretch.span),
                           .added = true,
                           .space_before = space.before,
                           .space_after = space.after});
  }

  // What is looked for.
  AlignedText pattern_of(const AddedToken& token, std::string_view where) const {
    const size_t most = kMaxTokenGrowth * token.content.size() + kFreeTokenBytes;
    AlignedText text = AlignedText::limited(token.content, most);
    try {
      return token.normalized ? normalized(std::move(text)) : text;
    } catch (const base::Error& error) {
      base::fail(fmt::format("{} added_tokens", where), "tokens that the file's normalizer can go through",
                 fmt::format("{}: {}", base::quoted(token.content), error.what()));
    }
  }

  void cut_raw(AlignedText source, const Goal& goal) const {
    const std::vector<Stretch> stretches = raw_finder_.cut(source.bytes());
    for (const Stretch& stretch : stretches) {
      if (stretch.id) {
        add_found(source, stretch, goal);
      } else {
        cut_normalized(normalized(stretches.size() == 1 ? std::move(source) : source.slice(stretch.span)), goal);
      }
    }
  }

  void cut_normalized(AlignedText text, const Goal& goal) const {
    const std::vector<Stretch> stretches = normalized_finder_.cut(text.bytes());
    for (const Stretch& stretch : stretches) {
      if (stretch.id) {
        add_found(text, stretch, goal);
      } else {
        cut_words(stretches.size() == 1 ? std::move(text) : text.slice(stretch.span), goal);
      }
    }
  }

  void cut_words(AlignedText text, const Goal& goal) const {
    std::vector<Span> words = {{0, static_cast<uint32_t>(text.bytes().size())}};
    const size_t before = goal.pieces.size();
    const Model& model = *parts_.model;
    const bool writes_bytes = parts_.pre_tokenizer && parts_.pre_tokenizer->writes_bytes() && model.reads_bytes();
    if (writes_bytes) {
      parts_.pre_tokenizer->split_unwritten(text, words);
      model.tokenize_bytes(text.bytes(), words, goal.cache, goal.pieces);
    } else {
      if (parts_.pre_tokenizer) parts_.pre_tokenizer->split(text, words);
      model.tokenize(text.bytes(), words, goal.cache, goal.pieces);
    }
    if (goal.encoding == nullptr) return;
    if (writes_bytes) goal.encoding->left_out += model.left_out(text.bytes());
    AlignedText::Cursor cursor(text);
    for (size_t i = before; i < goal.pieces.size(); ++i) {
      Span& span = goal.pieces[i].span;
      span = cursor.original(whole_characters(text.bytes(), span));
    }
  }

  TokenizerParts parts_;
  bool shares_ids_ = false;  // has an added token the id of a piece? That is the token's then
  AddedTokenFinder raw_finder_, normalized_finder_;
  std::unordered_map<uint32_t, size_t> added_by_id_;
  std::unordered_map<std::string, size_t> added_by_content_;
  mutable WordCaches caches_;
};

Tokenizer::Tokenizer(TokenizerParts parts, std::string_view where)
    : impl_(std::make_unique<Impl>(std::move(parts), where)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::from_file(const std::filesystem::path& tokenizer_json) {
  return from_json(base::read_file(tokenizer_json, kMaxFileBytes), tokenizer_json.string());
}

Tokenizer Tokenizer::from_json(std::string_view json, std::string_view where) {
  return from_parts(read_tokenizer_json(json, where), where);
}

Tokenizer Tokenizer::from_parts(TokenizerParts parts, std::string_view where) {
  return Tokenizer(std::move(parts), where);
}

Encoding Tokenizer::encode(std::string_view text, bool add_special) const {
  Encoding encoding;
  const std::vector<Piece> pieces = impl_->pieces_of(text, add_special, &encoding);
  const bool valid = simdjson::validate_utf8(text.data(), text.size());
  encoding.tokens.reserve(pieces.size());
  size_t last_begin = 0, last_end = 0;
  for (const Piece& piece : pieces) {
    Token& token = encoding.tokens.emplace_back();
    token.piece = impl_->piece_of(piece.id);
    token.id = piece.id;
    token.begin = piece.span.begin;
    token.end = piece.span.end;
    token.special = piece.special;
    token.type_id = piece.type_id;
    token.continues_word = piece.continues_word && (!valid || token.begin < last_end || joins_word(text, token.begin));
    const Span seen = valid ? whole_characters(text, piece.span) : piece.span;
    const std::string_view stretch = text.substr(seen.begin, seen.size());
    const bool shared = last_begin == token.begin && last_end == token.end && stretch.size() > kMostSharedBytes;
    if (piece.special || shared) {
      token.text = token.piece;
    } else if (valid) {
      token.text = shown_text(stretch, token.piece);
    } else {
      token.text = shown_text(base::valid_utf8(stretch), token.piece);
    }
    last_begin = token.begin;
    last_end = token.end;
    encoding.unknown_count += piece.unknown;
  }
  return encoding;
}

std::vector<int64_t> Tokenizer::encode_ids(std::string_view text, bool add_special) const {
  const std::vector<Piece> pieces = impl_->pieces_of(text, add_special, nullptr);
  std::vector<int64_t> ids(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) ids[i] = pieces[i].id;
  return ids;
}

std::string Tokenizer::decode(std::span<const int64_t> ids, bool skip_special) const {
  DecodeStream stream = decode_stream(skip_special);
  std::string text;
  for (const int64_t id : ids) text += stream.add(id);
  return text + stream.finish();
}

class DecodeStream::Impl {
 public:
  Impl(const Tokenizer::Impl& tokenizer, bool skip_special)
      : tokenizer_(tokenizer), skip_special_(skip_special), stream_(*tokenizer.parts().decoder) {}

  std::string add(int64_t id) {
    const uint32_t checked = tokenizer_.checked(id);
    const AddedToken* added = tokenizer_.added(checked);
    if (skip_special_ && added != nullptr && added->special) return "";
    const std::string_view piece = tokenizer_.piece_of(checked);
    if (piece.empty() && tokenizer_.id_of("") != checked) return "";  // an id that the file left out
    stream_.add(piece);
    return stream_.take();
  }

  std::string finish() {
    stream_.finish();
    return stream_.take();
  }

 private:
  const Tokenizer::Impl& tokenizer_;
  bool skip_special_;
  TextStream stream_;
};

DecodeStream::DecodeStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DecodeStream::~DecodeStream() = default;
DecodeStream::DecodeStream(DecodeStream&&) noexcept = default;
DecodeStream& DecodeStream::operator=(DecodeStream&&) noexcept = default;
std::string DecodeStream::add(int64_t id) { return impl_->add(id); }
std::string DecodeStream::finish() { return impl_->finish(); }

DecodeStream Tokenizer::decode_stream(bool skip_special) const {
  return DecodeStream(std::make_unique<DecodeStream::Impl>(*impl_, skip_special));
}

size_t Tokenizer::vocab_size() const { return impl_->parts().vocab_size; }

std::optional<int64_t> Tokenizer::id_of(std::string_view piece) const { return impl_->id_of(piece); }

std::string_view Tokenizer::piece_of(int64_t id) const { return impl_->piece_of(impl_->checked(id)); }

std::optional<size_t> Tokenizer::file_truncation() const { return impl_->parts().truncation; }

std::optional<size_t> Tokenizer::file_padding() const { return impl_->parts().padding; }

std::vector<std::string> Tokenizer::warnings() const { return impl_->parts().warnings; }

}  // namespace clearhead::text
