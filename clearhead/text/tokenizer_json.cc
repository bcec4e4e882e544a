// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/tokenizer_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <set>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/text/bert_normalizer.h"
#include "clearhead/text/bert_pre_tokenizer.h"
#include "clearhead/text/json_fields.h"
#include "clearhead/text/template_processing.h"
#include "clearhead/text/vocabulary.h"
#include "clearhead/text/wordpiece.h"

namespace clearhead::text {
namespace {

using simdjson::dom::element;

// No known file nests deeper than 8.
constexpr size_t kMaxNesting = 32;

// The trie that finds added tokens has room for so many of the greatest length.
constexpr size_t kMaxAddedTokens = 15000;

simdjson::dom::array list_of(element value, const std::string& where) {
  simdjson::dom::array list;
  if (value.get_array().get(list) != simdjson::SUCCESS) JsonFields::fail(where, "a list", value);
  return list;
}

std::unique_ptr<Normalizer> read_normalizer(element value, const std::string& where) {
  JsonFields fields(value, where);
  fields.one_of("type", {"BertNormalizer"});
  BertNormalizer::Config config;
  config.clean_text = fields.boolean("clean_text");
  config.space_han = fields.boolean("handle_chinese_chars");
  config.lower_case = fields.boolean("lowercase");
  // Absent means: as lowercase says.
  config.strip_accents = fields.optional("strip_accents") ? fields.boolean("strip_accents") : config.lower_case;
  fields.close();
  return std::make_unique<BertNormalizer>(config);
}

std::unique_ptr<PreTokenizer> read_pre_tokenizer(element value, const std::string& where) {
  JsonFields fields(value, where);
  fields.one_of("type", {"BertPreTokenizer"});
  fields.close();
  return std::make_unique<BertPreTokenizer>();
}

std::unique_ptr<Decoder> read_decoder(element value, const std::string& where) {
  JsonFields fields(value, where);
  fields.one_of("type", {"WordPiece"});
  std::string prefix(fields.string("prefix"));
  const bool cleanup = fields.boolean("cleanup");
  fields.close();
  return std::make_unique<WordPieceDecoder>(std::move(prefix), cleanup);
}

Vocabulary read_vocabulary(element value, const std::string& where) {
  simdjson::dom::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) JsonFields::fail(where, "an object", value);
  std::vector<std::pair<std::string_view, uint64_t>> entries;
  for (const simdjson::dom::key_value_pair entry : object) {
    uint64_t id;
    if (entry.value.get_uint64().get(id) != simdjson::SUCCESS) {
      JsonFields::fail(where + " " + base::quoted(entry.key), "an integer that is not negative", entry.value);
    }
    entries.emplace_back(entry.key, id);
  }
  return Vocabulary(entries, where);
}

std::unique_ptr<Model> read_model(element value, const std::string& where) {
  JsonFields fields(value, where);
  // Files of early versions do not name the type; only this one has a longest word.
  if (fields.has("type") || !fields.has("max_input_chars_per_word")) fields.one_of("type", {"WordPiece"});
  WordPiece::Config config;
  config.unknown_piece = fields.string("unk_token");
  config.continuing_prefix = fields.string("continuing_subword_prefix");
  config.max_word_code_points = fields.number("max_input_chars_per_word");
  Vocabulary vocabulary = read_vocabulary(fields.required("vocab"), where + " vocab");
  fields.close();
  return std::make_unique<WordPiece>(std::move(vocabulary), std::move(config), where);
}

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
// the model's last. Where the file says otherwise, that is a warning, as in the tokenizers library.
void read_added_tokens(element value, const std::string& where, TokenizerParts& parts) {
  std::set<std::string> contents;
  std::set<uint32_t> ids;
  for (const element item : list_of(value, where)) {
    if (parts.added.size() == kMaxAddedTokens) {
      base::fail(where, fmt::format("at most {} tokens", kMaxAddedTokens), "more");
    }
    AddedToken token = read_added_token(item, fmt::format("{}[{}]", where, parts.added.size()));
    if (!contents.insert(token.content).second)
      base::fail(where, "each token once", base::quoted(token.content) + " twice");
    if (!ids.insert(token.id).second) base::fail(where, "each id once", fmt::format("{} twice", token.id));
    const std::optional<uint32_t> known = parts.model->id_of(token.content);
    const uint32_t id = known ? *known : static_cast<uint32_t>(parts.vocab_size++);
    if (id != token.id) {
      parts.warnings.push_back(
          fmt::format("[{}] {} has id {} in the file but gets {}", where, base::quoted(token.content), token.id, id));
      token.id = id;
    }
    parts.added.push_back(std::move(token));
  }
}

std::string_view piece_of(const TokenizerParts& parts, uint32_t id) {
  if (id < parts.model->size()) return parts.model->piece_of(id);
  for (const AddedToken& token : parts.added) {
    if (token.id == id) return token.content;
  }
  return {};
}

uint32_t checked_special_id(element id, std::string_view piece, const std::string& where, TokenizerParts& parts) {
  uint64_t number;
  if (id.get_uint64().get(number) != simdjson::SUCCESS || number >= parts.vocab_size) {
    JsonFields::fail(where, fmt::format("an id below the vocabulary's {}", parts.vocab_size), id);
  }
  const auto checked = static_cast<uint32_t>(number);
  if (piece_of(parts, checked) != piece) {
    parts.warnings.push_back(fmt::format("[{}] {} stands for id {}, which is {}", where, base::quoted(piece), checked,
                                         base::quoted(piece_of(parts, checked))));
  }
  return checked;
}

// The ids that the special token `name` of a template stands for.
std::vector<uint32_t> read_special_ids(JsonFields& specials, std::string_view name, TokenizerParts& parts) {
  JsonFields fields(specials.required(name), specials.where() + " " + base::quoted(name));
  fields.string("id");
  std::vector<std::string_view> pieces;
  for (const element piece : list_of(fields.required("tokens"), fields.where() + " tokens")) {
    if (!piece.is_string()) JsonFields::fail(fields.where() + " tokens", "texts", piece);
    pieces.push_back(piece.get_string().value_unsafe());
  }
  std::vector<uint32_t> ids;
  for (const element id : list_of(fields.required("ids"), fields.where() + " ids")) {
    const std::string_view piece = ids.size() < pieces.size() ? pieces[ids.size()] : std::string_view();
    ids.push_back(checked_special_id(id, piece, fields.where() + " ids", parts));
  }
  if (ids.size() != pieces.size()) {
    base::fail(fields.where(), "as many ids as tokens", fmt::format("{} and {}", ids.size(), pieces.size()));
  }
  fields.close();
  return ids;
}

TemplateProcessing::Item read_item(element value, JsonFields& specials, const std::string& where,
                                   TokenizerParts& parts) {
  JsonFields item(value, where);
  TemplateProcessing::Item result;
  result.is_text = item.has("Sequence");
  JsonFields fields(item.required(result.is_text ? "Sequence" : "SpecialToken"), where);
  item.close();
  const uint64_t type_id = fields.number("type_id");
  if (type_id > UINT32_MAX) base::fail(where, "a type_id below 4294967296", fmt::format("{}", type_id));
  result.type_id = static_cast<uint32_t>(type_id);
  if (result.is_text) {
    fields.one_of("id", {"A"});
  } else {
    result.ids = read_special_ids(specials, fields.string("id"), parts);
  }
  fields.close();
  return result;
}

// Only the template of a single text is used; that of a pair is not looked into.
std::unique_ptr<PostProcessor> read_template(JsonFields& fields, TokenizerParts& parts) {
  JsonFields specials(fields.required("special_tokens"), fields.where() + " special_tokens");
  const std::string where = fields.where() + " single";
  std::vector<TemplateProcessing::Item> items;
  size_t texts = 0;
  for (const element value : list_of(fields.required("single"), where)) {
    items.push_back(read_item(value, specials, where, parts));
    texts += items.back().is_text;
    if (items.size() > 64) base::fail(where, "at most 64 items", "more");
  }
  if (texts != 1) base::fail(where, "the sequence A once", fmt::format("{} times", texts));
  list_of(fields.required("pair"), fields.where() + " pair");
  return std::make_unique<TemplateProcessing>(std::move(items));
}

// [text, id], as BertProcessing has it
TemplateProcessing::Item read_bert_special(JsonFields& fields, std::string_view name, TokenizerParts& parts) {
  const std::string where = fields.where() + " " + std::string(name);
  const element value = fields.required(name);
  const simdjson::dom::array pair = list_of(value, where);
  std::string_view piece;
  element id;
  if (pair.size() != 2 || pair.at(0).get_string().get(piece) != simdjson::SUCCESS ||
      pair.at(1).get(id) != simdjson::SUCCESS) {
    JsonFields::fail(where, "a list of a text and an id", value);
  }
  TemplateProcessing::Item item;
  item.ids = {checked_special_id(id, piece, where, parts)};
  return item;
}

std::unique_ptr<PostProcessor> read_post_processor(element value, const std::string& where, TokenizerParts& parts) {
  JsonFields fields(value, where);
  std::unique_ptr<PostProcessor> result;
  if (fields.one_of("type", {"TemplateProcessing", "BertProcessing"}) == 0) {
    result = read_template(fields, parts);
  } else {
    std::vector<TemplateProcessing::Item> items = {read_bert_special(fields, "cls", parts)};
    items.push_back({.is_text = true});
    items.push_back(read_bert_special(fields, "sep", parts));
    result = std::make_unique<TemplateProcessing>(std::move(items));
  }
  fields.close();
  return result;
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

TokenizerParts read_tokenizer_json(std::string_view json, std::string_view where) {
  const std::string file(where);
  simdjson::dom::parser parser;
  element root;
  simdjson::error_code error = parser.allocate(json.size(), kMaxNesting);
  if (error == simdjson::SUCCESS) error = parser.parse(json.data(), json.size()).get(root);
  if (error != simdjson::SUCCESS) base::fail(file, "a tokenizer as JSON", simdjson::error_message(error));

  TokenizerParts parts;
  JsonFields fields(root, file);
  if (fields.has("version")) fields.one_of("version", {"1.0"});
  parts.model = read_model(fields.required("model"), file + " model");
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
