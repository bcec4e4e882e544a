// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "clearhead/text/decoder.h"
#include "clearhead/text/model.h"
#include "clearhead/text/normalizer.h"
#include "clearhead/text/pattern.h"
#include "clearhead/text/post_processor.h"
#include "clearhead/text/pre_tokenizer.h"

namespace clearhead::text {

// Each byte written as a printable character: 188 bytes as the Latin-1 character of that number, the other 68 as
// U+0100 to U+0143 in rising order. Every text can then be cut into pieces, without an unknown one.
// Source: Radford et al. 2019, Language Models are Unsupervised Multitask Learners, section 2.2.
class ByteLevel final : public PreTokenizer {
 public:
  // use_regex: words are cut out first, as GPT-2 does.
  ByteLevel(bool add_prefix_space, bool use_regex);

  // Cuts out what a pattern finds and what lies between, with no space put in front.
  explicit ByteLevel(std::unique_ptr<Pattern> words) : add_prefix_space_(false), words_(std::move(words)) {}

  void split(AlignedText& text, std::vector<Span>& words) const override;
  bool writes_bytes() const override { return !add_prefix_space_; }
  void split_unwritten(AlignedText& text, std::vector<Span>& words) const override;

 private:
  bool add_prefix_space_;
  std::unique_ptr<Pattern> words_;
};

// The same as a normalizer: only writes.
class ByteLevelNormalizer final : public Normalizer {
 public:
  void normalize(const AlignedText& source, AlignedText& result) const override;
};

// The character that a byte is written as.
char32_t character_of_byte(unsigned char byte);

// Characters of white space at the ends of a piece, where a space may be written as a byte's character; both are all of
// a piece of nothing else.
struct SpaceAround {
  uint32_t before = 0, after = 0;
};
SpaceAround space_around(std::string_view piece);

// Takes the white space at the ends of a piece out of its span: as many characters of the original as the piece has of
// white space, whatever these are. add_prefix_space: a single space in front of the text was put in and takes no room.
// Pieces are those of `model`, which must outlive it.
class TrimOffsets final : public PostProcessor {
 public:
  TrimOffsets(const Model& model, bool add_prefix_space) : model_(model), add_prefix_space_(add_prefix_space) {}
  void process(std::vector<Piece>& pieces, const Original& original, bool add_special) const override;

 private:
  const Model& model_;
  bool add_prefix_space_;
};

// Characters become the bytes that they stand for; what is no UTF-8 then becomes U+FFFD.
class ByteLevelDecoder final : public Decoder {
 public:
  NextSink stream(NextSink next) const override;
};

}  // namespace clearhead::text
