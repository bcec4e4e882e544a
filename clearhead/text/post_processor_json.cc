// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/component_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/text/byte_level.h"
#include "clearhead/text/template_processing.h"

namespace clearhead::text {
namespace {

using simdjson::dom::element;

// More than any template in use has around a text.
constexpr size_t kMaxSpecials = 1024;

std::string_view piece_of(const TokenizerParts& parts, uint32_t id) {
  if (id < parts.model->size()) return parts.model->piece_of(id);
  const auto found = std::ranges::find(parts.added, id, &AddedToken::id);
  return found == parts.added.end() ? std::string_view() : found->content;
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
    if (ids.size() == kMaxSpecials) base::fail(fields.where(), fmt::format("at most {} ids", kMaxSpecials), "more");
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
  size_t texts = 0, specials_around = 0;
  for (const element value : list_of(fields.required("single"), where)) {
    items.push_back(read_item(value, specials, where, parts));
    texts += items.back().is_text;
    specials_around += items.back().ids.size();
    if (items.size() > 64) base::fail(where, "at most 64 items", "more");
    if (specials_around > kMaxSpecials) {
      base::fail(where, fmt::format("at most {} special tokens around a text", kMaxSpecials), "more");
    }
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

std::unique_ptr<PostProcessor> read_bert(JsonFields& fields, TokenizerParts& parts) {
  std::vector<TemplateProcessing::Item> items = {read_bert_special(fields, "cls", parts)};
  items.push_back({.is_text = true});
  items.push_back(read_bert_special(fields, "sep", parts));
  return std::make_unique<TemplateProcessing>(std::move(items));
}

std::unique_ptr<PostProcessor> read_byte_level(JsonFields& fields, TokenizerParts& parts) {
  const bool prefix = fields.boolean("add_prefix_space"), trims = fields.boolean("trim_offsets");
  if (fields.has("use_regex")) fields.boolean("use_regex");  // of the pre-tokenizer of that name
  if (!trims) return std::make_unique<PostProcessorSequence>(std::vector<std::unique_ptr<PostProcessor>>());
  return std::make_unique<TrimOffsets>(*parts.model, prefix);
}

std::unique_ptr<PostProcessor> read_roberta(JsonFields& fields, TokenizerParts& parts) {
  std::vector<std::unique_ptr<PostProcessor>> steps;
  const bool prefix = fields.boolean("add_prefix_space");
  if (fields.boolean("trim_offsets")) steps.push_back(std::make_unique<TrimOffsets>(*parts.model, prefix));
  steps.push_back(read_bert(fields, parts));
  return std::make_unique<PostProcessorSequence>(std::move(steps));
}

std::unique_ptr<PostProcessor> read_sequence(JsonFields& fields, TokenizerParts& parts) {
  const std::string where = fields.where() + " processors";
  std::vector<std::unique_ptr<PostProcessor>> steps;
  for (const element step : steps_of(fields.required("processors"), where)) {
    steps.push_back(read_post_processor(step, fmt::format("{}[{}]", where, steps.size()), parts));
  }
  return std::make_unique<PostProcessorSequence>(std::move(steps));
}

}  // namespace

std::unique_ptr<PostProcessor> read_post_processor(element value, const std::string& where, TokenizerParts& parts) {
  JsonFields fields(value, where);
  static constexpr std::unique_ptr<PostProcessor> (*kReaders[])(JsonFields&, TokenizerParts&) = {
      read_template, read_bert, read_byte_level, read_roberta, read_sequence};
  const size_t type =
      fields.one_of("type", {"TemplateProcessing", "BertProcessing", "ByteLevel", "RobertaProcessing", "Sequence"});
  std::unique_ptr<PostProcessor> result = kReaders[type](fields, parts);
  fields.close();
  return result;
}

}  // namespace clearhead::text
