// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "clearhead/text/tokenizer.h"

namespace clearhead::text {

// Tokens without a vocabulary, for lessons that need no model: text is cut at white space and punctuation, each
// punctuation mark and each Chinese character is a token of its own, and each invalid UTF-8 sequence is one that reads
// U+FFFD. Case is kept; there are no special tokens.
//
// The id depends on the piece alone, so that a word has the same vector in every text:
// id = FNV-1a of 64 bits over the piece's bytes, modulo 2^31.
// Source: Fowler, Noll, Vo (offset basis 0xcbf29ce484222325, prime 0x100000001b3).
//
// Throws: Error if text is longer than 1 GiB.
Encoding toy_encode(std::string_view text);

}  // namespace clearhead::text
