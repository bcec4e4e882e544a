// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "clearhead/format/gguf_metadata.h"
#include "clearhead/text/tokenizer.h"

namespace clearhead::text {

// The tokenizer.json that says what the metadata of a GGUF say about its tokenizer. tokenizer.ggml.model may be
//
//   gpt2    byte-level BPE; tokenizer.ggml.pre names how words are cut
//   llama   pieces merged by their scores, with bytes for what has no piece
//   bert    WordPiece on text in lower case; pieces that begin a word are stored with U+2581 in front, others bare
//
// Control and user-defined tokens are cut out of the text first. A token that begins every text is put in where the
// metadata say so, or where the model is llama and they say nothing.
// Throws: Error (failure) naming the key, or the value that is not known here.
std::string gguf_tokenizer_json(const format::GgufMetadata& metadata);

// The tokenizer of that text.
Tokenizer gguf_tokenizer(const format::GgufMetadata& metadata);

}  // namespace clearhead::text
