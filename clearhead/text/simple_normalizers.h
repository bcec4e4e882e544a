// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clearhead/text/normalizer.h"
#include "clearhead/text/pattern.h"

namespace clearhead::text {

// One after the other.
class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> steps) : steps_(std::move(steps)) {}
  void normalize(const AlignedText& source, AlignedText& result) const override;

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

// Puts a text in place of each match.
class Replace final : public Normalizer {
 public:
  Replace(std::unique_ptr<Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void normalize(const AlignedText& source, AlignedText& result) const override;

 private:
  std::unique_ptr<Pattern> pattern_;
  std::string content_;
};

// Puts a text in front, unless there is nothing.
class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  void normalize(const AlignedText& source, AlignedText& result) const override;

 private:
  std::string prefix_;
};

// Takes white space away from the ends.
class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void normalize(const AlignedText& source, AlignedText& result) const override;

 private:
  bool left_, right_;
};

// Takes marks of all kinds away; nothing is decomposed.
class StripAccents final : public Normalizer {
 public:
  void normalize(const AlignedText& source, AlignedText& result) const override;
};

// Lower case, code point by code point.
class Lowercase final : public Normalizer {
 public:
  void normalize(const AlignedText& source, AlignedText& result) const override;
};

// The cleaning of SentencePiece's rules for translation: most controls are deleted, the rest of them, line ends and
// marks without width become spaces. Source: the normalizer Nmt of the tokenizers library.
class Nmt final : public Normalizer {
 public:
  void normalize(const AlignedText& source, AlignedText& result) const override;
};

}  // namespace clearhead::text
