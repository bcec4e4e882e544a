// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "clearhead/format/gguf_metadata.h"
#include "clearhead/text/tokenizer.h"

namespace clearhead::text {

// The tokenizer that the metadata of a GGUF describe, with the ids of llama.cpp. tokenizer.ggml.model may be
//
//   gpt2    byte-level BPE; tokenizer.ggml.pre names how words are cut (gguf_cut.h)
//   llama   pieces merged by their scores, with bytes for what has no piece
//   bert    WordPiece on text that gguf_normalizer.h says, in lower case and without accents unless the keys of the
//           normalizer say otherwise; pieces that begin a word are stored with U+2581 in front, others bare
//   t5      Unigram, without bytes for what has no piece; a text ends with </s> unless the file says otherwise
//
// Control, unknown and user-defined tokens are cut out of the text first. A token that begins every text is put in
// where the metadata say so, or where they say nothing and texts usually begin with one: with model llama, and with
// some names. Beside llama.cpp: an id outside the vocabulary, a token that stands there twice and a merge of unknown
// pieces are refused; of two tokens that overlap in a text the one that begins first is cut out, not the longer one;
// and each invalid sequence of bytes is one U+FFFD. Throws: Error (failure) naming the key, or the value that is not
// known here.
Tokenizer gguf_tokenizer(const format::GgufMetadata& metadata);

// The tokenizer.json that comes nearest to it: words are cut with the same expressions, but by the Unicode of those who
// read it, and neighbours of a byte without a piece may be merged.
std::string gguf_tokenizer_json(const format::GgufMetadata& metadata);

}  // namespace clearhead::text
