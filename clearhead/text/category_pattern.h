// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "clearhead/text/pattern.h"

namespace clearhead::text {

// A regular expression over the categories of category.h, as llama.cpp reads those that cut words: the first
// alternative that matches counts, and what repeats takes as much as it can.
//
//   \p{L} \p{N} \p{M} \p{P} \p{S}   a category; \p{Lu}, \p{Ll}, \p{Lt}, \p{Lm} and \p{Lo} are all \p{L}
//   \s \S \d \r \n \t \x{17f}       white space, none, an ASCII digit, one code point
//   [...] [^...]                    any of these, none of these
//   ( ) (?: ) | ? * + {m} {m,n}     groups, alternatives, repetitions
//   (?= ) (?! ) $                   what follows, what does not, the end of the text
//
// White space beyond ASCII counts as a vertical tab, so that neither its own name nor its category finds it.
// A search needs no recursion but for (?= ) and (?! ).
// Throws: Error for an expression that is none of these, or repeats what may be empty.
std::unique_ptr<Pattern> category_pattern(std::string_view expression);

}  // namespace clearhead::text
