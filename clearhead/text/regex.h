// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "clearhead/text/pattern.h"

namespace clearhead::text {

// Whether PCRE2 compiles an expression for the processor, where it can, or interprets it.
enum class RegexEngine { kCompiled, kInterpreted };

// Finds what a regular expression of the tokenizers library means (regex_syntax.h), by PCRE2's engine. A text is first
// written with one byte for each code point, which says in which of the expression's sets it is: so classes are those
// of the library, whatever Unicode PCRE2 knows, and matching is one of bytes.
// Whatever the expression and the text, each call of find and find_all takes about 1 s and 4 us for each character of
// processor time of its thread at most (it may go on for as long again before it is seen), and at most 64 MB and 512
// bytes for each character, never more than 512 MB (and half as much while that grows), to note where to go back to.
// They throw Error if that is not enough for a text. Which texts these are depends on how fast the processor is, and on
// the engine: an interpreted expression is several times as slow and needs ten times the memory. What expressions of
// tokenizers in use need is far below.
// Throws: Error if the expression is not read here or refused by PCRE2; `where` opens the text.
std::unique_ptr<Pattern> regex_by_backtracking(std::string_view expression, std::string_view where,
                                               RegexEngine engine = RegexEngine::kCompiled);

}  // namespace clearhead::text
