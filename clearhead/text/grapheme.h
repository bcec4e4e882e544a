// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace clearhead::text {

// Where the grapheme cluster ends that begins at byte `at` of a text of valid UTF-8: what a person takes for one
// character, a letter with its marks or a flag of two halves. Time grows with its length.
// Source: Unicode Standard Annex 29, extended grapheme clusters; the classes of code points are those of the tokenizers
// library (scripts/make_break_tables.py).
size_t end_of_grapheme(std::string_view text, size_t at);

}  // namespace clearhead::text
