// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/format/gguf_metadata.h"

// What the metadata of a GGUF say about a tokenizer, whatever its model, and how a tokenizer.json says it.
namespace clearhead::text {

// Values of tokenizer.ggml.token_type.
enum TokenType : int64_t {
  kNormalToken = 1,
  kUnknownToken = 2,
  kControlToken = 3,
  kUserDefinedToken = 4,
  kUnusedToken = 5
};

struct GgufPieces {
  std::vector<std::string> tokens;  // each once
  std::vector<int64_t> types;       // [tokens]
  std::vector<float> scores;        // [tokens], or empty; finite
};

// The key of the metadata, and what opens a complaint about it.
std::string tokenizer_key(std::string_view name);

// Throws: Error (failure) for counts that differ, texts that are no UTF-8 or stand there twice, and scores that are not
// finite. A token without text is named after its id, as in llama.cpp.
GgufPieces read_gguf_pieces(const format::GgufMetadata& metadata);

// The token of a key such as bos_token_id, which must be in the vocabulary if it is there; `usual` where it is absent,
// if the vocabulary goes so far.
std::optional<size_t> special_token(const format::GgufMetadata& metadata, const GgufPieces& pieces,
                                    std::string_view name, std::optional<size_t> usual = std::nullopt);

// Which tokens are put around every text, where the file does not say.
struct UsualEnds {
  bool begins = false, ends = false;            // is there one in front, one behind?
  std::optional<size_t> first = {}, last = {};  // their ids
};

// A text as JSON has it.
std::string quoted_json(std::string_view text);

// {"text": id, ...} of all tokens.
std::string vocabulary_json(const GgufPieces& pieces);

// The tokens that are cut out of the text as it stands, as added_tokens has them. mask_takes_spaces: so does <mask>
// with the white space before it.
std::string added_tokens_json(const GgufPieces& pieces, bool mask_takes_spaces = false);

// The tokens that are put in front of and behind every text, as post_processor has them, or null.
std::string post_processor_json(const format::GgufMetadata& metadata, const GgufPieces& pieces, const UsualEnds& usual);

}  // namespace clearhead::text
