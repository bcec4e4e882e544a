// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "clearhead/text/tokenizer.h"

namespace clearhead::measure {

// Lines of English-like sentences, at least so many bytes: words of the vocabulary, the frequent ones often, some glued
// together so that they have to be cut; the same every time.
std::string sample_text(const text::Tokenizer& tokenizer, size_t bytes);

// Tokenizes every line of a text, one after another; returns the number of tokens. With offsets: the tokens as people
// see them; without: ids alone.
size_t tokenize_lines(const text::Tokenizer& tokenizer, const std::string& text, bool offsets);

}  // namespace clearhead::measure
