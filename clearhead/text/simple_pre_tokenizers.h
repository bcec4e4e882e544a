// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "clearhead/text/pre_tokenizer.h"

namespace clearhead::text {

// One after the other.
class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<std::unique_ptr<PreTokenizer>> steps) : steps_(std::move(steps)) {}
  void split(AlignedText& text, std::vector<Span>& words) const override;

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

// Cuts at white space, which is dropped.
class WhitespaceSplit final : public PreTokenizer {
 public:
  void split(AlignedText& text, std::vector<Span>& words) const override;
};

}  // namespace clearhead::text
