// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/component_json.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/text/bpe.h"
#include "clearhead/text/unigram.h"
#include "clearhead/text/vocabulary.h"
#include "clearhead/text/word_level.h"
#include "clearhead/text/wordpiece.h"

namespace clearhead::text {
namespace {

using simdjson::dom::element;

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

std::unique_ptr<Model> read_wordpiece(JsonFields& fields) {
  WordPiece::Config config;
  config.unknown_piece = fields.string("unk_token");
  config.continuing_prefix = fields.string("continuing_subword_prefix");
  config.max_word_code_points = fields.number("max_input_chars_per_word");
  Vocabulary vocabulary = read_vocabulary(fields.required("vocab"), fields.where() + " vocab");
  return std::make_unique<WordPiece>(std::move(vocabulary), std::move(config), fields.where());
}

std::unique_ptr<Model> read_word_level(JsonFields& fields) {
  const std::string_view unknown = fields.string("unk_token");
  Vocabulary vocabulary = read_vocabulary(fields.required("vocab"), fields.where() + " vocab");
  return std::make_unique<WordLevel>(std::move(vocabulary), unknown, fields.where());
}

// 10^exponent, the nearest double.
double power_of_ten(int exponent) {
  static const std::array<double, 309> powers = [] {
    std::array<double, 309> result;
    for (size_t i = 0; i < result.size(); ++i) {
      const std::string text = fmt::format("1e{}", i);
      std::from_chars(text.data(), text.data() + text.size(), result[i]);
    }
    return result;
  }();
  return powers[static_cast<size_t>(exponent)];
}

// A score as the tokenizers library reads it from its shortest decimal form: the digits as a whole number become a
// double, which is then multiplied or divided by a power of ten. That rounds twice, and a quarter of the scores of a
// large vocabulary end one unit in the last place beside the nearest double. Sums of scores that tie without it do not
// tie there, or the other way round, so the same tokens need the same errors.
double score_of(double nearest) {
  if (nearest == 0 || !std::isfinite(nearest)) return nearest;
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text), std::abs(nearest), std::chars_format::scientific).ptr;
  uint64_t digits = 0;
  int exponent = 0;
  const char* at = text;
  for (bool fraction = false; *at != 'e'; ++at) {
    if (*at == '.') {
      fraction = true;
      continue;
    }
    digits = 10 * digits + static_cast<uint64_t>(*at - '0');
    exponent -= fraction;
  }
  int written = 0;
  at += at[1] == '+' ? 2 : 1;
  std::from_chars(at, end, written);
  exponent += written;
  constexpr int kLargestExponent = 308;  // of a power of ten that is a double
  auto value = static_cast<double>(digits);
  for (; exponent < -kLargestExponent; exponent += kLargestExponent) value /= 1e308;
  value = exponent < 0 ? value / power_of_ten(-exponent) : value * power_of_ten(exponent);
  return nearest < 0 ? -value : value;
}

std::unique_ptr<Model> read_unigram(JsonFields& fields) {
  const std::string where = fields.where() + " vocab";
  std::vector<std::pair<std::string_view, double>> pieces;
  for (const element value : list_of(fields.required("vocab"), where)) {
    simdjson::dom::array pair;
    std::string_view piece;
    double score;
    if (value.get_array().get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
        pair.at(0).get_string().get(piece) != simdjson::SUCCESS ||
        pair.at(1).get_double().get(score) != simdjson::SUCCESS) {
      JsonFields::fail(fmt::format("{}[{}]", where, pieces.size()), "a list of a text and a number", value);
    }
    pieces.emplace_back(piece, score_of(score));
  }
  Unigram::Config config;
  if (fields.optional("unk_id")) config.unknown_id = fields.number("unk_id");
  if (fields.optional("byte_fallback")) config.byte_fallback = fields.boolean("byte_fallback");
  return std::make_unique<Unigram>(std::move(pieces), config, fields.where());
}

// "a b" of early files, or ["a", "b"].
Bpe::Merges read_merges(element value, const std::string& where) {
  Bpe::Merges merges;
  for (const element merge : list_of(value, where)) {
    const auto place = [&] { return fmt::format("{}[{}]", where, merges.size()); };
    std::string_view text, left, right;
    simdjson::dom::array pair;
    if (merge.get_string().get(text) == simdjson::SUCCESS) {
      const size_t space = text.find(' ');
      if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
        base::fail(place(), "two pieces with one space between", base::quoted(text));
      }
      merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    } else if (merge.get_array().get(pair) == simdjson::SUCCESS && pair.size() == 2 &&
               pair.at(0).get_string().get(left) == simdjson::SUCCESS &&
               pair.at(1).get_string().get(right) == simdjson::SUCCESS) {
      merges.emplace_back(left, right);
    } else {
      JsonFields::fail(place(), "two pieces", merge);
    }
  }
  return merges;
}

std::unique_ptr<Model> read_bpe(JsonFields& fields) {
  Bpe::Config config;
  const auto text = [&](const char* name) { return fields.optional(name) ? std::string(fields.string(name)) : ""; };
  const auto flag = [&](const char* name) { return fields.optional(name) && fields.boolean(name); };
  if (const auto dropout = fields.optional("dropout")) {
    double share = 0;
    if (dropout->get_double().get(share) != simdjson::SUCCESS || share != 0) {
      JsonFields::fail(fields.where() + " dropout", "none: merges are not left to chance", *dropout);
    }
  }
  if (fields.optional("unk_token")) config.unknown_piece = text("unk_token");
  config.continuing_prefix = text("continuing_subword_prefix");
  config.end_suffix = text("end_of_word_suffix");
  config.fuse_unknown = flag("fuse_unk");
  config.byte_fallback = flag("byte_fallback");
  config.ignore_merges = flag("ignore_merges");
  Vocabulary vocabulary = read_vocabulary(fields.required("vocab"), fields.where() + " vocab");
  const Bpe::Merges written = read_merges(fields.required("merges"), fields.where() + " merges");
  const auto merges = Bpe::in_order(vocabulary, written, config.continuing_prefix, fields.where());
  return std::make_unique<Bpe>(std::move(vocabulary), merges, std::move(config), fields.where());
}

}  // namespace

std::unique_ptr<Model> read_model(element value, const std::string& where) {
  JsonFields fields(value, where);
  // Files of early versions do not name the type: only WordPiece has a longest word, only BPE has merges.
  size_t type = 0;
  if (!fields.has("type") && fields.has("merges")) {
    type = 2;
  } else if (fields.has("type") || !fields.has("max_input_chars_per_word")) {
    type = fields.one_of("type", {"WordPiece", "Unigram", "BPE", "WordLevel"});
  }
  static constexpr std::unique_ptr<Model> (*kReaders[])(JsonFields&) = {read_wordpiece, read_unigram, read_bpe,
                                                                        read_word_level};
  std::unique_ptr<Model> model = kReaders[type](fields);
  fields.close();
  return model;
}

}  // namespace clearhead::text
