// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "clearhead/text/tokenizer.h"

namespace clearhead::text::tests {

// A tokenizer.json of BERT's kind with a vocabulary of a few pieces, to be changed by a test.
inline nlohmann::json small_json() {
  return nlohmann::json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [
      {"id": 1, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
      {"id": 2, "content": "[SEP]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {
      "type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
      "pair": [],
      "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [2], "tokens": ["[SEP]"]}}},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 10,
      "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "play": 3, "##ing": 4, "##ed": 5, "a": 6, "b": 7, "!": 8, "the": 9,
                "ab": 10, "##b": 11, "naive": 12, "\u4f60": 13, "\u1112": 14, "##\u1161": 15, "##\u11ab": 16, "I": 17}}})");
}

inline nlohmann::json added_token(int id, std::string content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", false}};
}

inline Tokenizer from(const nlohmann::json& json) { return Tokenizer::from_json(json.dump(), "tokenizer.json"); }

// "piece[begin,end) piece[begin,end)" of the tokens that stand for text.
inline std::string shown(const Encoding& encoding) {
  std::string result;
  for (const Token& token : encoding.tokens) {
    if (token.special) continue;
    if (!result.empty()) result += ' ';
    result += token.piece + "[" + std::to_string(token.begin) + "," + std::to_string(token.end) + ")";
  }
  return result;
}

}  // namespace clearhead::text::tests
