// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/text/tokenizer.h"

namespace clearhead::measure {

// Lines of English-like sentences, at least so many bytes: words of the vocabulary, the frequent ones often, some glued
// together so that they have to be cut; the same every time.
std::string sample_text(const text::Tokenizer& tokenizer, size_t bytes);

// Tokenizes every line of a text, one after another; returns the number of tokens. With offsets: the tokens as people
// see them; without: ids alone.
size_t tokenize_lines(const text::Tokenizer& tokenizer, const std::string& text, bool offsets);

// The tokenizer.json of a model: its file, or what says the same as the metadata of its GGUF.
// Throws: Error if the model is not there or has no tokenizer.
std::string tokenizer_json_of(std::string_view model);

// Many texts, each tokenized for itself.
class TokenizerRun {
 public:
  TokenizerRun(text::Tokenizer tokenizer, std::vector<std::string> texts)
      : tokenizer_(std::move(tokenizer)), texts_(std::move(texts)) {}

  // [texts], without special tokens
  std::vector<std::vector<int64_t>> ids() const;

  // Tokenizes all texts, as people see the tokens or to ids alone; returns the number of tokens.
  size_t run(bool offsets) const;

 private:
  text::Tokenizer tokenizer_;
  std::vector<std::string> texts_;
};

}  // namespace clearhead::measure
