// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "clearhead/text/decoder.h"
#include "clearhead/text/pre_tokenizer.h"

namespace clearhead::text {

// Writes spaces as a visible mark, so that pieces of words carry the space before them.
struct MetaspaceConfig {
  enum class Prepend { always, first, never };

  std::string mark = "\xe2\x96\x81";  // U+2581; one code point
  Prepend prepend = Prepend::always;  // a mark in front of each stretch, or of that which begins the text
  bool split = true;                  // cut before each mark
};

// Source: Kudo and Richardson 2018, SentencePiece, section 3.1; in the details the tokenizers library.
class Metaspace final : public PreTokenizer {
 public:
  explicit Metaspace(MetaspaceConfig config) : config_(std::move(config)) {}
  void split(AlignedText& text, std::vector<Span>& words) const override;
  bool asks_origins() const override { return config_.prepend == MetaspaceConfig::Prepend::first; }

 private:
  void rewrite(const AlignedText& text, Span word, AlignedText& result) const;

  MetaspaceConfig config_;
};

// Marks become spaces again; one that was put in front of the text is left out.
class MetaspaceDecoder final : public Decoder {
 public:
  explicit MetaspaceDecoder(MetaspaceConfig config) : config_(std::move(config)) {}
  NextSink stream(NextSink next) const override;

 private:
  MetaspaceConfig config_;
};

}  // namespace clearhead::text
