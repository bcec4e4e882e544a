// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/simple_decoders.h"

#include <charconv>
#include <optional>

#include "clearhead/base/utf8.h"

namespace clearhead::text {
namespace {

// The byte of a piece <0x00> to <0xFF>.
std::optional<char> byte_of(std::string_view piece) {
  constexpr size_t kBytes = 6;
  if (piece.size() != kBytes || !piece.starts_with("<0x") || !piece.ends_with('>')) return std::nullopt;
  unsigned value = 0;
  const char* end = piece.data() + kBytes - 1;
  const auto [rest, error] = std::from_chars(piece.data() + 3, end, value, 16);
  if (error != std::errc() || rest != end) return std::nullopt;
  return static_cast<char>(value);
}

class ByteFallbackStep final : public PieceStep {
 public:
  using PieceStep::PieceStep;

 private:
  void take(std::string piece) override {
    if (const auto byte = byte_of(piece)) {
      bytes_ += *byte;
    } else {
      end();
      give(piece);
    }
  }

  void end() override {
    if (bytes_.empty()) return;
    if (base::first_invalid_utf8(bytes_)) {
      for (size_t i = 0; i < bytes_.size(); ++i) give("\xef\xbf\xbd");
    } else {
      give(bytes_);
    }
    bytes_.clear();
  }

  std::string bytes_;
};

class FuseStep final : public PieceSink {
 public:
  explicit FuseStep(NextSink next) : next_(std::move(next)) {}
  void add(std::string_view part) override { next_->add(part); }
  void end_piece() override {}
  void finish() override {
    next_->end_piece();
    next_->finish();
  }

 private:
  NextSink next_;
};

// Keeps back what may be taken from the end of the piece.
class StripStep final : public PieceSink {
 public:
  StripStep(NextSink next, std::string_view character, size_t start, size_t stop)
      : next_(std::move(next)), character_(character), start_(start), stop_(stop) {}

  void add(std::string_view part) override {
    while (taken_ < start_ && part.starts_with(character_)) {
      part.remove_prefix(character_.size());
      ++taken_;
    }
    if (part.empty()) return;
    taken_ = start_;
    kept_back_ += part;
    const std::string_view all = kept_back_;
    size_t sure = all.size();
    for (size_t i = 0; i < stop_ && all.substr(0, sure).ends_with(character_); ++i) sure -= character_.size();
    next_->add(all.substr(0, sure));
    kept_back_.erase(0, sure);
  }

  void end_piece() override {
    kept_back_.clear();
    taken_ = 0;
    next_->end_piece();
  }

  void finish() override { next_->finish(); }

 private:
  NextSink next_;
  std::string_view character_;
  size_t start_, stop_;
  size_t taken_ = 0;  // from the beginning of the piece
  std::string kept_back_;
};

// The last piece is another one.
class BpeStep final : public PieceStep {
 public:
  BpeStep(NextSink next, std::string_view suffix) : PieceStep(std::move(next)), suffix_(suffix) {}

 private:
  void take(std::string piece) override {
    give_last(" ");
    last_ = std::move(piece);
  }

  void end() override { give_last(""); }

  void give_last(std::string_view space) {
    if (!last_) return;
    replace_all(*last_, suffix_, space);
    give(*last_);
    last_.reset();
  }

  std::string_view suffix_;
  std::optional<std::string> last_;
};

class CtcStep final : public PieceStep {
 public:
  CtcStep(NextSink next, const CtcDecoder::Config& config) : PieceStep(std::move(next)), config_(config) {}

 private:
  void take(std::string piece) override {
    if (piece == last_) return;
    last_ = piece;
    replace_all(piece, config_.pad_piece, "");
    if (config_.cleanup) {
      clean_up(piece);
      replace_all(piece, config_.word_end, " ");
    }
    if (!piece.empty()) give(piece);
  }

  const CtcDecoder::Config& config_;
  std::optional<std::string> last_;
};

}  // namespace

NextSink ByteFallbackDecoder::stream(NextSink next) const {
  return std::make_unique<ByteFallbackStep>(std::move(next));
}

NextSink FuseDecoder::stream(NextSink next) const { return std::make_unique<FuseStep>(std::move(next)); }

NextSink ReplaceDecoder::stream(NextSink next) const {
  return rewrite_step(std::move(next), [this](std::string& piece, bool) {
    std::string result;
    for_each_part(*pattern_, piece, {0, static_cast<uint32_t>(piece.size())}, [&](Span part, bool is_match) {
      result += is_match ? std::string_view(content_) : std::string_view(piece).substr(part.begin, part.size());
    });
    piece = std::move(result);
  });
}

NextSink StripDecoder::stream(NextSink next) const {
  return std::make_unique<StripStep>(std::move(next), character_, start_, stop_);
}

NextSink CtcDecoder::stream(NextSink next) const { return std::make_unique<CtcStep>(std::move(next), config_); }

NextSink BpeDecoder::stream(NextSink next) const { return std::make_unique<BpeStep>(std::move(next), suffix_); }

}  // namespace clearhead::text
