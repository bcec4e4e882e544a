// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/text/tokenizer.h"

namespace clearhead::text {

// The tokens of each word as [first, one past the last). A special token is a word of its own; so is each punctuation
// mark where the tokenizer cuts it off.
std::vector<std::pair<size_t, size_t>> word_groups(const Encoding& encoding);

// Is text not empty and made of nothing but punctuation marks?
bool is_punctuation(std::string_view text);

// Is there a Chinese character (also one of Japanese or Korean writing) in text?
bool has_han(std::string_view text);

// Do the code points before and after byte `at` of a valid text belong to one word, as far as they tell? Not if one of
// them is a punctuation mark or a Chinese character: pre-tokenizers that cut at spaces alone leave those together.
// Beyond an end of the text there is nothing that parts them.
bool joins_word(std::string_view text, size_t at);

}  // namespace clearhead::text
