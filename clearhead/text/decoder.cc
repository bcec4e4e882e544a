// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/decoder.h"

#include <array>
#include <utility>

namespace clearhead::text {
namespace {

// Where a stream ends.
class TextEnd final : public PieceSink {
 public:
  explicit TextEnd(std::string& text) : text_(text) {}
  void add(std::string_view part) override { text_ += part; }
  void end_piece() override {}
  void finish() override {}

 private:
  std::string& text_;
};

}  // namespace

std::string Decoder::decode(std::span<const std::string_view> pieces) const {
  TextStream stream(*this);
  for (const std::string_view piece : pieces) stream.add(piece);
  stream.finish();
  return stream.take();
}

TextStream::TextStream(const Decoder& decoder)
    : text_(std::make_unique<std::string>()), first_(decoder.stream(std::make_unique<TextEnd>(*text_))) {}
TextStream::~TextStream() = default;
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream& TextStream::operator=(TextStream&&) noexcept = default;

void TextStream::add(std::string_view piece) {
  first_->add(piece);
  first_->end_piece();
}

void TextStream::finish() { first_->finish(); }

void PieceStep::end_piece() { take(std::exchange(piece_, {})); }

void PieceStep::finish() {
  end();
  next_->finish();
}

void PieceStep::give(std::string_view piece) {
  next_->add(piece);
  next_->end_piece();
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  if (at == std::string::npos) return;
  std::string result;
  size_t done = 0;
  for (; at != std::string::npos; at = text.find(from, done)) {
    result.append(text, done, at - done);
    result += to;
    done = at + from.size();
  }
  text = result.append(text, done);
}

void clean_up(std::string& piece) {
  using Rule = std::pair<std::string_view, std::string_view>;
  static constexpr std::array<Rule, 11> kRules = {{{" .", "."},
                                                   {" ?", "?"},
                                                   {" !", "!"},
                                                   {" ,", ","},
                                                   {" ' ", "'"},
                                                   {" n't", "n't"},
                                                   {" 'm", "'m"},
                                                   {" do not", " don't"},
                                                   {" 's", "'s"},
                                                   {" 've", "'ve"},
                                                   {" 're", "'re"}}};
  for (const auto& [from, to] : kRules) replace_all(piece, from, to);
}

NextSink DecoderSequence::stream(NextSink next) const {
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) next = (*step)->stream(std::move(next));
  return next;
}

NextSink SpaceDecoder::stream(NextSink next) const {
  return rewrite_step(std::move(next), [](std::string& piece, bool is_first) {
    if (!is_first) piece.insert(0, 1, ' ');
  });
}

NextSink WordPieceDecoder::stream(NextSink next) const {
  return rewrite_step(std::move(next), [this](std::string& piece, bool is_first) {
    if (!is_first && piece.starts_with(prefix_)) {
      piece.erase(0, prefix_.size());
    } else if (!is_first) {
      piece.insert(0, 1, ' ');
    }
    if (cleanup_) clean_up(piece);
  });
}

}  // namespace clearhead::text
