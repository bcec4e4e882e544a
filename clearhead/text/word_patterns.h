// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "clearhead/text/pattern.h"

namespace clearhead::text {

// Matchers of ours for the regular expressions that cut words in well-known tokenizers: one pass, no backtracking. The
// result is nullptr for an expression that is none of them.
std::unique_ptr<Pattern> known_word_pattern(std::string_view expression);

}  // namespace clearhead::text
