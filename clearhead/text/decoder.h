// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clearhead::text {

// Takes pieces, one after the other, each in parts that are valid UTF-8.
class PieceSink {
 public:
  virtual ~PieceSink() = default;
  virtual void add(std::string_view part) = 0;
  virtual void end_piece() = 0;

  // No piece comes any more.
  virtual void finish() = 0;
};

using NextSink = std::unique_ptr<PieceSink>;

// The last component of a tokenizer: makes text of pieces again.
class Decoder {
 public:
  virtual ~Decoder() = default;

  // Takes pieces and hands on what they become, as soon as no later piece can change it. The decoder must outlive it.
  virtual NextSink stream(NextSink next) const = 0;

  // All at once: what the stream hands on, one after the other.
  std::string decode(std::span<const std::string_view> pieces) const;
};

// The pieces of a text as they come, and the text that is certain by then.
class TextStream {
 public:
  // The decoder must outlive it.
  explicit TextStream(const Decoder& decoder);
  ~TextStream();
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;

  void add(std::string_view piece);
  void finish();

  // The text since it was last taken.
  std::string take() { return std::exchange(*text_, {}); }

 private:
  std::unique_ptr<std::string> text_;
  NextSink first_;
};

// A step that works on whole pieces.
class PieceStep : public PieceSink {
 public:
  explicit PieceStep(NextSink next) : next_(std::move(next)) {}
  void add(std::string_view part) override { piece_ += part; }
  void end_piece() override;
  void finish() override;

 protected:
  // Takes one piece; gives what it becomes, now or later.
  virtual void take(std::string piece) = 0;

  // Gives what is left.
  virtual void end() {}

  void give(std::string_view piece);
  PieceSink& next() { return *next_; }

 private:
  NextSink next_;
  std::string piece_;
};

// A step that only has to know whether a piece is the first: rewrite(piece, is_first) changes it.
template <class Rewrite>
class RewriteStep final : public PieceStep {
 public:
  RewriteStep(NextSink next, Rewrite rewrite) : PieceStep(std::move(next)), rewrite_(std::move(rewrite)) {}

 private:
  void take(std::string piece) override {
    rewrite_(piece, is_first_);
    is_first_ = false;
    give(piece);
  }

  Rewrite rewrite_;
  bool is_first_ = true;
};

template <class Rewrite>
NextSink rewrite_step(NextSink next, Rewrite rewrite) {
  return std::make_unique<RewriteStep<Rewrite>>(std::move(next), std::move(rewrite));
}

// Puts `to` in place of each `from`.
void replace_all(std::string& text, std::string_view from, std::string_view to);

// Takes the space before punctuation and English contractions away.
void clean_up(std::string& piece);

// One after the other.
class DecoderSequence final : public Decoder {
 public:
  explicit DecoderSequence(std::vector<std::unique_ptr<Decoder>> steps) : steps_(std::move(steps)) {}
  NextSink stream(NextSink next) const override;

 private:
  std::vector<std::unique_ptr<Decoder>> steps_;
};

// For a file without a decoder: pieces with spaces between.
class SpaceDecoder final : public Decoder {
 public:
  NextSink stream(NextSink next) const override;
};

// Joins continuation pieces to what is before them and puts spaces between words; cleanup takes the space before
// punctuation and English contractions away again.
class WordPieceDecoder final : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  NextSink stream(NextSink next) const override;

 private:
  std::string prefix_;
  bool cleanup_;
};

}  // namespace clearhead::text
