// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The tables that scripts/make_unicode_tables.py writes, all sorted by code point; unicode.h is their reader.
namespace clearhead::text::tables {

struct CodeRange {
  char32_t first, last;
};

struct Decomposition {
  char32_t code_point;
  uint16_t at, length;  // in kDecompositionPool
};

struct Composition {
  char32_t first, second, composed;
};

struct CombiningRange {
  char32_t first, last;
  uint8_t combining_class;
};

struct LowerCaseRange {
  char32_t first, last, step;  // every step-th code point from first to last
  int32_t difference;          // lower case minus code point
};

extern const CodeRange kWhiteSpaceRanges[10];
extern const CodeRange kPunctuationRanges[156];
extern const CodeRange kRemovedRanges[25];
extern const CodeRange kHanRanges[7];
extern const CodeRange kLetterRanges[677];
extern const CodeRange kNumberRanges[144];
extern const CodeRange kWordRanges[796];
extern const CodeRange kNonspacingMarkRanges[279];
extern const CodeRange kMarkRanges[250];
extern const char32_t kDecompositionPool[5924];
extern const Decomposition kDecompositions[2060];
extern const Decomposition kCompatibility[3678];
extern const Composition kCompositions[940];
extern const CombiningRange kCombiningRanges[334];
extern const LowerCaseRange kLowerCaseRanges[185];

}  // namespace clearhead::text::tables
