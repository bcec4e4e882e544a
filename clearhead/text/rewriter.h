// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "clearhead/text/aligned_text.h"

namespace clearhead::text {

// One code point of a rewritten text, and how it moves on in the old one. The tokenizers library counts so, and which
// bytes a token stands for follows from it:
//   0      it stands for the next code point of the old text
//   1      it is put in, and belongs to the code point that was passed last
//   -n     it stands for the next code point, and the n after that are gone
struct Change {
  char32_t value;
  int32_t moves;
};

// Writes a rewritten form of a text, from left to right, and keeps account of where its characters came from.
class Rewriter {
 public:
  // Goes through `range` of source and appends to result.
  Rewriter(const AlignedText& source, Span range, AlignedText& result);

  // Where it stands in source.
  uint32_t at() const { return at_; }

  // Keeps what is before byte `end` of source.
  void keep_to(uint32_t end);

  // Leaves out what is before byte `end` of source.
  void skip_to(uint32_t end);

  void put(Change change);

  // Puts in a text; it belongs to the code point that was passed last.
  void insert(std::string_view text);

 private:
  void pass_one();

  const AlignedText& source_;
  AlignedText& result_;
  uint32_t at_;
  uint32_t end_;
  Span last_;          // of the source: the code point that was passed last
  bool first_ = true;  // none was passed, and last_ is empty
};

}  // namespace clearhead::text
