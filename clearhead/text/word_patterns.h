// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "clearhead/text/pattern.h"

namespace clearhead::text {

// What letters, numbers and white space are: as the tokenizers library has it (unicode.h), or as Unicode 15.1 does
// (category.h), which is what llama.cpp goes by. For that one U+017F is no s, in whatever case.
enum class WordClasses { tokenizers_library, unicode_15_1 };

// Matchers of ours for the regular expressions that cut words in well-known tokenizers: one pass, no backtracking. The
// result is nullptr for an expression that is none of them.
std::unique_ptr<Pattern> known_word_pattern(std::string_view expression,
                                            WordClasses classes = WordClasses::tokenizers_library);

}  // namespace clearhead::text
