// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/tokenizer_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <set>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/text/component_json.h"
#include "clearhead/text/json_fields.h"
#include "clearhead/text/trie.h"

namespace clearhead::text {
namespace {

using simdjson::dom::element;

// No known file nests deeper than 8.
constexpr size_t kMaxNesting = 32;

// The trie that finds added tokens has room for so many of the greatest length.
constexpr size_t kMaxAddedTokens = 15000;

AddedToken read_added_token(element value, const std::string& where) {
  JsonFields fields(value, where);
  AddedToken token;
  const uint64_t id = fields.number("id");
  if (id >= UINT32_MAX) base::fail(where, "an id below 4294967295", fmt::format("{}", id));
  token.id = static_cast<uint32_t>(id);
  token.content = fields.string("content");
  token.single_word = fields.boolean("single_word");
  token.lstrip = fields.boolean("lstrip");
  token.rstrip = fields.boolean("rstrip");
  token.normalized = fields.boolean("normalized");
  token.special = fields.boolean("special");
  fields.close();
  if (token.content.empty()) base::fail(where, "content", "an empty text");
  if (token.content.size() > Trie::kMaxStringBytes) {
    base::fail(where, fmt::format("content of at most {} bytes", Trie::kMaxStringBytes),
               fmt::format("{} bytes: {}", token.content.size(), base::quoted(token.content)));
  }
  return token;
}

// The id in the file is not what counts: a token that the model has keeps the model's id, others are numbered on from
// the number of its pieces, which may be the id of a piece if the model leaves ids out. Where the file says otherwise,
// that is a warning, as in the tokenizers library.
void read_added_tokens(element value, const std::string& where, TokenizerParts& parts) {
  std::set<std::string> contents;
  std::set<uint32_t> ids;
  auto next = static_cast<uint32_t>(parts.model->count());
  for (const element item : list_of(value, where)) {
    if (parts.added.size() == kMaxAddedTokens) {
      base::fail(where, fmt::format("at most {} tokens", kMaxAddedTokens), "more");
    }
    AddedToken token = read_added_token(item, fmt::format("{}[{}]", where, parts.added.size()));
    if (!contents.insert(token.content).second)
      base::fail(where, "each token once", base::quoted(token.content) + " twice");
    if (!ids.insert(token.id).second) base::fail(where, "each id once", fmt::format("{} twice", token.id));
    const std::optional<uint32_t> known = parts.model->id_of(token.content);
    const uint32_t id = known.value_or(next);
    next = std::max(next, id + 1);
    parts.vocab_size = std::max<size_t>(parts.vocab_size, id + 1);
    if (id != token.id) {
      const bool taken = !known && id < parts.model->size() && parts.model->id_of(parts.model->piece_of(id)) == id;
      parts.warnings.push_back(
          fmt::format("[{}] {} has id {} in the file but gets {}{}", where, base::quoted(token.content), token.id, id,
                      taken ? fmt::format(", as {} has", base::quoted(parts.model->piece_of(id))) : ""));
      token.id = id;
    }
    parts.added.push_back(std::move(token));
  }
}

uint64_t read_truncation(element value, const std::string& where) {
  JsonFields fields(value, where);
  const uint64_t length = fields.number("max_length");
  fields.one_of("strategy", {"LongestFirst", "OnlyFirst", "OnlySecond"});
  fields.number("stride");
  if (fields.has("direction")) fields.one_of("direction", {"Left", "Right"});
  fields.close();
  return length;
}

uint64_t read_padding(element value, const std::string& where) {
  JsonFields fields(value, where);
  uint64_t length = 0;
  const element strategy = fields.required("strategy");
  if (strategy.is_object()) {
    JsonFields fixed(strategy, where + " strategy");
    length = fixed.number("Fixed");
    fixed.close();
  } else {
    fields.one_of("strategy", {"BatchLongest"});
  }
  fields.one_of("direction", {"Left", "Right"});
  if (fields.optional("pad_to_multiple_of")) fields.number("pad_to_multiple_of");
  fields.number("pad_id");
  fields.number("pad_type_id");
  fields.string("pad_token");
  fields.close();
  return length;
}

}  // namespace

simdjson::dom::array list_of(element value, const std::string& where) {
  simdjson::dom::array list;
  if (value.get_array().get(list) != simdjson::SUCCESS) JsonFields::fail(where, "a list", value);
  return list;
}

simdjson::dom::array steps_of(element value, const std::string& where) {
  constexpr size_t kMaxSteps = 256;  // each of them goes through every text, and through every added token at once
  const simdjson::dom::array steps = list_of(value, where);
  size_t count = 0;
  for ([[maybe_unused]] const element step : steps) {
    if (++count > kMaxSteps) base::fail(where, fmt::format("at most {} steps", kMaxSteps), "more");
  }
  return steps;
}

TokenizerParts read_tokenizer_json(std::string_view json, std::string_view where, TokenizerParts parts) {
  const std::string file(where);
  simdjson::dom::parser parser;
  element root;
  simdjson::error_code error = parser.allocate(json.size(), kMaxNesting);
  if (error == simdjson::SUCCESS) error = parser.parse(json.data(), json.size()).get(root);
  if (error != simdjson::SUCCESS) base::fail(file, "a tokenizer as JSON", simdjson::error_message(error));

  JsonFields fields(root, file);
  if (fields.has("version")) fields.one_of("version", {"1.0"});
  if (!parts.model) parts.model = read_model(fields.required("model"), file + " model");
  parts.vocab_size = parts.model->size();
  if (const auto value = fields.optional("added_tokens")) read_added_tokens(*value, file + " added_tokens", parts);
  if (const auto value = fields.optional("normalizer"))
    parts.normalizer = read_normalizer(*value, file + " normalizer");
  if (const auto value = fields.optional("pre_tokenizer")) {
    parts.pre_tokenizer = read_pre_tokenizer(*value, file + " pre_tokenizer");
  }
  if (const auto value = fields.optional("post_processor")) {
    parts.post_processor = read_post_processor(*value, file + " post_processor", parts);
  }
  const auto decoder = fields.optional("decoder");
  parts.decoder = decoder ? read_decoder(*decoder, file + " decoder") : std::make_unique<SpaceDecoder>();
  if (const auto value = fields.optional("truncation"))
    parts.truncation = read_truncation(*value, file + " truncation");
  if (const auto value = fields.optional("padding")) parts.padding = read_padding(*value, file + " padding");
  fields.close();
  return parts;
}

}  // namespace clearhead::text
