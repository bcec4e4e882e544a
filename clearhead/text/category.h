// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/text/unicode.h"

namespace clearhead::text {

// General categories of Unicode 15.1.0, which are those that llama.cpp has. What is not assigned there is in none of
// them.
enum Category : uint8_t {
  kLetter = 1,
  kNumber = 2,
  kMark = 4,
  kPunctuationMark = 8,
  kSymbol = 16,
  kSpace = 32,        // White_Space, which is no category and may stand beside one
  kControlCode = 64,  // category C but for what is not assigned: controls, format, private use
};

// The bits of Category of all code points, built when it is first asked for.
const PropertyTable& category_table();

namespace tables {

struct CategoryChange {
  char32_t first;
  uint8_t bits;
};

extern const CategoryChange kCategoryChanges[2276];

}  // namespace tables
}  // namespace clearhead::text
