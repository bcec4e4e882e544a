// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "clearhead/text/unicode_tables.h"

// The tables that scripts/make_regex_tables.py writes; code_set.h is their reader.
namespace clearhead::text::tables {

// Sorted by name: lower case, without spaces, hyphens and underlines; with a colon in front if it is of [:name:].
struct RegexProperty {
  std::string_view name;
  uint16_t at, length;  // in kRegexRanges
};

extern const CodeRange kRegexRanges[13844];
extern const RegexProperty kRegexProperties[140];

}  // namespace clearhead::text::tables
