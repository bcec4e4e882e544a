// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/text/added_tokens.h"
#include "clearhead/text/decoder.h"
#include "clearhead/text/model.h"
#include "clearhead/text/normalizer.h"
#include "clearhead/text/post_processor.h"
#include "clearhead/text/pre_tokenizer.h"

namespace clearhead::text {

// What a tokenizer is made of. Normalizer, pre-tokenizer and post-processor may be absent: that step does nothing then.
struct TokenizerParts {
  std::unique_ptr<Normalizer> normalizer;
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  std::unique_ptr<Model> model;
  std::unique_ptr<PostProcessor> post_processor;
  std::unique_ptr<Decoder> decoder;
  std::vector<AddedToken> added;       // with the ids that they really have
  size_t vocab_size = 0;               // above every id
  std::optional<uint64_t> truncation;  // tokens that the file would cut a text to
  std::optional<uint64_t> padding;     // tokens that the file would fill a text up to; 0: to the longest of a batch
  std::vector<std::string> warnings;
};

// Reads a tokenizer.json, as the tokenizers library writes it. `where` opens each error text. parts: a model and a
// pre-tokenizer that are known from elsewhere, if they are; the text has no field of that name then.
// Throws: Error for malformed JSON, a component or field that is not known, and ids that do not fit together.
TokenizerParts read_tokenizer_json(std::string_view json, std::string_view where, TokenizerParts parts = {});

}  // namespace clearhead::text
