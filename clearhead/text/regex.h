// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "clearhead/text/pattern.h"

namespace clearhead::text {

// Finds what a regular expression of the tokenizers library means (regex_syntax.h), by PCRE2's engine. A text is first
// written with one byte for each code point, which says in which of the expression's sets it is: so classes are those
// of the library, whatever Unicode PCRE2 knows, and matching is one of bytes.
// Whatever the expression and the text: memory is bounded, and so are steps and processor time, by numbers that grow
// with the text's length. find and find_all throw Error if that is not enough for a text.
// Throws: Error if the expression is not read here or refused by PCRE2; `where` opens the text.
std::unique_ptr<Pattern> regex_by_backtracking(std::string_view expression, std::string_view where);

}  // namespace clearhead::text
