// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace clearhead::text {

// How a code point stands in a grapheme cluster: Grapheme_Cluster_Break, Extended_Pictographic and Indic_Conjunct_Break
// of Unicode in one, for no two of them meet in a code point but where it is said.
enum class Grapheme : uint8_t {
  other,
  control,        // line ends too
  extend,         // a mark that is none of the next two
  linked_extend,  // a mark, and Indic_Conjunct_Break Extend
  linker,         // a mark, and Indic_Conjunct_Break Linker: a virama that joins consonants
  joiner,         // U+200D
  spacing_mark,
  prepend,
  pictograph,
  regional,  // half of a flag
  consonant,
  lead,  // letters and syllables of Hangul
  vowel,
  trail,
  lead_vowel,
  lead_vowel_trail,
};

// The tables that scripts/make_break_tables.py writes, sorted by code point; grapheme.h and unicode_scripts.h read
// them.
namespace tables {

struct GraphemeRange {
  char32_t first, last;
  Grapheme kind;
};

struct ScriptRange {
  char32_t first, last;
  uint8_t script;
};

extern const GraphemeRange kGraphemeRanges[828];
extern const ScriptRange kScriptRanges[852];

}  // namespace tables
}  // namespace clearhead::text
