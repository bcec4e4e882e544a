// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "clearhead/text/json_fields.h"
#include "clearhead/text/tokenizer_json.h"

// The readers of a tokenizer.json's components, a file each. `where` opens each error text.
namespace clearhead::text {

std::unique_ptr<Normalizer> read_normalizer(JsonFields::Element value, const std::string& where);
std::unique_ptr<PreTokenizer> read_pre_tokenizer(JsonFields::Element value, const std::string& where);
std::unique_ptr<Model> read_model(JsonFields::Element value, const std::string& where);
std::unique_ptr<Decoder> read_decoder(JsonFields::Element value, const std::string& where);

// Looks up special tokens in what parts has so far, and warns there of those that do not fit.
std::unique_ptr<PostProcessor> read_post_processor(JsonFields::Element value, const std::string& where,
                                                   TokenizerParts& parts);

// Throws: Error if value is no list.
simdjson::dom::array list_of(JsonFields::Element value, const std::string& where);

// The steps of a component of type Sequence. Throws: Error if value is no list, or longer than any sequence in use.
simdjson::dom::array steps_of(JsonFields::Element value, const std::string& where);

}  // namespace clearhead::text
