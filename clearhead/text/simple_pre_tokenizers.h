// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "clearhead/text/pattern.h"
#include "clearhead/text/pre_tokenizer.h"

namespace clearhead::text {

// One after the other.
class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<std::unique_ptr<PreTokenizer>> steps) : steps_(std::move(steps)) {}
  void split(AlignedText& text, std::vector<Span>& words) const override;
  bool writes_bytes() const override { return !steps_.empty() && steps_.back()->writes_bytes(); }
  void split_unwritten(AlignedText& text, std::vector<Span>& words) const override;
  bool asks_origins() const override;

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

// Cuts at white space, which is dropped.
class WhitespaceSplit final : public PreTokenizer {
 public:
  void split(AlignedText& text, std::vector<Span>& words) const override;
};

// Cuts out words (\w of a regular expression) and runs of what is neither that nor white space, which is dropped.
class Whitespace final : public PreTokenizer {
 public:
  void split(AlignedText& text, std::vector<Span>& words) const override;
};

// Cuts into stretches of so many code points; the last of a word may be shorter.
class FixedLength final : public PreTokenizer {
 public:
  // length must not be 0.
  explicit FixedLength(size_t length) : length_(length) {}
  void split(AlignedText& text, std::vector<Span>& words) const override;

 private:
  size_t length_;
};

// What becomes of the parts of a text that a pattern finds.
enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// Cuts words by a pattern; inverted: what it finds and what lies between change places.
class Split final : public PreTokenizer {
 public:
  Split(std::unique_ptr<Pattern> pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  void split(AlignedText& text, std::vector<Span>& words) const override;

 private:
  std::unique_ptr<Pattern> pattern_;
  Behavior behavior_;
  bool invert_;
};

// A pattern that finds each code point of a kind by itself, or runs of them.
std::unique_ptr<Pattern> kind_pattern(bool (*is_kind)(char32_t), bool runs);

}  // namespace clearhead::text
