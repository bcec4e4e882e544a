// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/text/pre_tokenizer.h"

namespace clearhead::text {

// Cuts runs of digits into groups of three from the right, in time that grows with their length.
class DigitGroups final : public PreTokenizer {
 public:
  // behind: cut behind each group, so that what stands before a run stays with its first group; digits are all of
  // category N. before: cut before each group of three, so that one or two digits stay with what stands before them;
  // digits are those of ASCII. Both as llama.cpp has it.
  enum class Cut { behind, before };

  explicit DigitGroups(Cut cut) : cut_(cut) {}
  void split(AlignedText& text, std::vector<Span>& words) const override;

 private:
  Cut cut_;
};

}  // namespace clearhead::text
