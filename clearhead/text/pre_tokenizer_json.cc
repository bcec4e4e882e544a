// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/component_json.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/text/bert_pre_tokenizer.h"
#include "clearhead/text/byte_level.h"
#include "clearhead/text/metaspace_json.h"
#include "clearhead/text/pattern_json.h"
#include "clearhead/text/simple_pre_tokenizers.h"
#include "clearhead/text/unicode.h"
#include "clearhead/text/unicode_scripts.h"
#include "clearhead/text/valid_utf8.h"

namespace clearhead::text {
namespace {

using simdjson::dom::element;

std::unique_ptr<PreTokenizer> read_sequence(JsonFields& fields) {
  const std::string where = fields.where() + " pretokenizers";
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  for (const element step : steps_of(fields.required("pretokenizers"), where)) {
    steps.push_back(read_pre_tokenizer(step, fmt::format("{}[{}]", where, steps.size())));
  }
  return std::make_unique<PreTokenizerSequence>(std::move(steps));
}

std::unique_ptr<PreTokenizer> read_metaspace(JsonFields& fields) {
  return std::make_unique<Metaspace>(read_metaspace_config(fields));
}

std::unique_ptr<PreTokenizer> read_byte_level(JsonFields& fields) {
  const bool prefix = fields.boolean("add_prefix_space");
  fields.boolean("trim_offsets");  // of the post-processor of that name
  const bool use_regex = !fields.has("use_regex") || fields.boolean("use_regex");
  return std::make_unique<ByteLevel>(prefix, use_regex);
}

Behavior read_behavior(JsonFields& fields) {
  static constexpr Behavior kBehaviors[] = {Behavior::removed, Behavior::isolated, Behavior::merged_with_previous,
                                            Behavior::merged_with_next, Behavior::contiguous};
  return kBehaviors[fields.one_of("behavior",
                                  {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"})];
}

std::unique_ptr<PreTokenizer> read_split(JsonFields& fields) {
  auto pattern = read_pattern(fields.required("pattern"), fields.where() + " pattern");
  const Behavior behavior = read_behavior(fields);
  return std::make_unique<Split>(std::move(pattern), behavior, fields.boolean("invert"));
}

std::unique_ptr<PreTokenizer> read_digits(JsonFields& fields) {
  const bool each = fields.boolean("individual_digits");
  return std::make_unique<Split>(kind_pattern(is_number, !each), Behavior::isolated, false);
}

std::unique_ptr<PreTokenizer> read_punctuation(JsonFields& fields) {
  const auto is_mark = [](char32_t c) { return (property_table()[c] & kPunctuation) != 0; };
  const Behavior behavior = fields.has("behavior") ? read_behavior(fields) : Behavior::isolated;
  return std::make_unique<Split>(kind_pattern(is_mark, false), behavior, false);
}

std::unique_ptr<PreTokenizer> read_delimiter(JsonFields& fields) {
  const std::string_view delimiter = fields.string("delimiter");
  if (delimiter.empty() || code_point_at(delimiter, 0).length != delimiter.size()) {
    base::fail(fields.where() + " delimiter", "one character", base::quoted(delimiter));
  }
  return std::make_unique<Split>(literal_pattern(std::string(delimiter)), Behavior::removed, false);
}

std::unique_ptr<PreTokenizer> read_fixed_length(JsonFields& fields) {
  constexpr uint64_t kUsual = 5;
  const uint64_t length = fields.has("length") ? fields.number("length") : kUsual;
  if (length == 0) base::fail(fields.where() + " length", "at least 1", "0");
  return std::make_unique<FixedLength>(length);
}

template <class Kind>
std::unique_ptr<PreTokenizer> read_plain(JsonFields&) {
  return std::make_unique<Kind>();
}

constexpr Reader<PreTokenizer> kReaders[] = {
    {"BertPreTokenizer", read_plain<BertPreTokenizer>},
    {"ByteLevel", read_byte_level},
    {"CharDelimiterSplit", read_delimiter},
    {"Digits", read_digits},
    {"FixedLength", read_fixed_length},
    {"Metaspace", read_metaspace},
    {"Punctuation", read_punctuation},
    {"Sequence", read_sequence},
    {"Split", read_split},
    {"UnicodeScripts", read_plain<UnicodeScripts>},
    {"Whitespace", read_plain<Whitespace>},
    {"WhitespaceSplit", read_plain<WhitespaceSplit>},
};

}  // namespace

std::unique_ptr<PreTokenizer> read_pre_tokenizer(element value, const std::string& where) {
  return read_by_type<PreTokenizer>(value, where, kReaders);
}

}  // namespace clearhead::text
