// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "clearhead/text/gguf_tokenizer.h"
#include "tests/format/gguf_bytes.h"
#include "tests/support/error_text.h"

// Metadata of small tokenizers.
namespace clearhead::tests {

constexpr int kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kByte = 6;
inline const std::string kSpace = "\u0120", kLine = "\u2581";  // a space in byte-level pieces, and in scored ones

struct GgufPiece {
  std::string text;
  int type = kNormal;
  float score = 0;
};

// The metadata of a tokenizer.
inline GgufBytes metadata(const std::string& model, const std::vector<GgufPiece>& pieces) {
  GgufBytes file;
  std::string tokens, types, scores;
  for (const GgufPiece& piece : pieces) {
    tokens += gguf_string(piece.text);
    types += le(piece.type);
    scores += le(piece.score);
  }
  file.word("tokenizer.ggml.model", model);
  file.array("tokenizer.ggml.tokens", 8, pieces.size(), tokens);
  file.array("tokenizer.ggml.token_type", 5, pieces.size(), types);
  if (model == "llama") file.array("tokenizer.ggml.scores", 6, pieces.size(), scores);
  return file;
}

// 0 a, 1 b, 2 ab, 3 space, 4 space a, 5 and 6 digits, 7 both, 8 control, 9 user-defined
inline GgufBytes byte_level() {
  GgufBytes file = metadata("gpt2", {{"a"},
                                     {"b"},
                                     {"ab"},
                                     {kSpace},
                                     {kSpace + "a"},
                                     {"1"},
                                     {"2"},
                                     {"12"},
                                     {"<|x|>", kControl},
                                     {"ba ba", kUserDefined}});
  const std::string merges = gguf_string("a b") + gguf_string(kSpace + " a") + gguf_string("1 2");
  file.array("tokenizer.ggml.merges", 8, 3, merges);
  return file;
}

inline std::vector<int64_t> ids(const GgufBytes& file, std::string_view text) {
  return text::gguf_tokenizer(read_gguf(file.text()).metadata()).encode_ids(text);
}

inline std::string complaint(const GgufBytes& file) {
  return error_text([&] { text::gguf_tokenizer(read_gguf(file.text()).metadata()); });
}

// 0 unknown, 1 begin, 2 and 3 bytes, 4 space, 5 a, 6 b, 7 space a, 8 ab, 9 space ab
inline GgufBytes scored() {
  return metadata("llama", {{"<unk>", kUnknown},
                            {"<s>", kControl},
                            {"<0xC3>", kByte},
                            {"<0xA9>", kByte},
                            {kLine, kNormal, -9},
                            {"a", kNormal, -8},
                            {"b", kNormal, -8},
                            {kLine + "a", kNormal, -1},
                            {"ab", kNormal, -2},
                            {kLine + "ab", kNormal, -3}});
}

}  // namespace clearhead::tests
