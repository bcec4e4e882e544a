// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clearhead/text/decoder.h"
#include "clearhead/text/pattern.h"

namespace clearhead::text {

// Pieces <0x00> to <0xFF> side by side become the text of their bytes; if that is no UTF-8, U+FFFD for each.
class ByteFallbackDecoder final : public Decoder {
 public:
  NextSink stream(NextSink next) const override;
};

// All pieces become one.
class FuseDecoder final : public Decoder {
 public:
  NextSink stream(NextSink next) const override;
};

// Puts a text in place of each match in a piece.
class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(std::unique_ptr<Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  NextSink stream(NextSink next) const override;

 private:
  std::unique_ptr<Pattern> pattern_;
  std::string content_;
};

// Takes up to `start` of a character away from the beginning of each piece and up to `stop` from its end.
class StripDecoder final : public Decoder {
 public:
  StripDecoder(std::string character, size_t start, size_t stop)
      : character_(std::move(character)), start_(start), stop_(stop) {}
  NextSink stream(NextSink next) const override;

 private:
  std::string character_;
  size_t start_, stop_;
};

// A suffix that ends a word becomes a space; at the end of the text it goes.
class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  NextSink stream(NextSink next) const override;

 private:
  std::string suffix_;
};

// Of characters heard one after the other: the same piece again is the same sound, one between two is a pause and goes.
// With cleanup, spaces before punctuation go and a piece that ends a word becomes a space.
// Source: Graves et al. 2006, Connectionist Temporal Classification.
class CtcDecoder final : public Decoder {
 public:
  struct Config {
    std::string pad_piece;
    std::string word_end;
    bool cleanup = true;
  };

  explicit CtcDecoder(Config config) : config_(std::move(config)) {}
  NextSink stream(NextSink next) const override;

 private:
  Config config_;
};

}  // namespace clearhead::text
