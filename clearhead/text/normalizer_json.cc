// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/component_json.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/text/base64.h"
#include "clearhead/text/bert_normalizer.h"
#include "clearhead/text/byte_level.h"
#include "clearhead/text/normal_form.h"
#include "clearhead/text/pattern_json.h"
#include "clearhead/text/precompiled.h"
#include "clearhead/text/simple_normalizers.h"

namespace clearhead::text {
namespace {

using simdjson::dom::element;

std::unique_ptr<Normalizer> read_bert(JsonFields& fields) {
  BertNormalizer::Config config;
  config.clean_text = fields.boolean("clean_text");
  config.space_han = fields.boolean("handle_chinese_chars");
  config.lower_case = fields.boolean("lowercase");
  // Absent means: as lowercase says.
  config.strip_accents = fields.optional("strip_accents") ? fields.boolean("strip_accents") : config.lower_case;
  return std::make_unique<BertNormalizer>(config);
}

std::unique_ptr<Normalizer> read_sequence(JsonFields& fields) {
  const std::string where = fields.where() + " normalizers";
  std::vector<std::unique_ptr<Normalizer>> steps;
  for (const element step : steps_of(fields.required("normalizers"), where)) {
    steps.push_back(read_normalizer(step, fmt::format("{}[{}]", where, steps.size())));
  }
  return std::make_unique<NormalizerSequence>(std::move(steps));
}

std::unique_ptr<Normalizer> read_replace(JsonFields& fields) {
  auto pattern = read_pattern(fields.required("pattern"), fields.where() + " pattern");
  return std::make_unique<Replace>(std::move(pattern), std::string(fields.string("content")));
}

template <NormalForm::Form form>
std::unique_ptr<Normalizer> read_form(JsonFields&) {
  return std::make_unique<NormalForm>(form);
}

template <class Kind>
std::unique_ptr<Normalizer> read_plain(JsonFields&) {
  return std::make_unique<Kind>();
}

std::unique_ptr<Normalizer> read_strip(JsonFields& fields) {
  return std::make_unique<Strip>(fields.boolean("strip_left"), fields.boolean("strip_right"));
}

std::unique_ptr<Normalizer> read_prepend(JsonFields& fields) {
  return std::make_unique<Prepend>(std::string(fields.string("prepend")));
}

std::unique_ptr<Normalizer> read_precompiled(JsonFields& fields) {
  const std::string where = fields.where() + " precompiled_charsmap";
  return std::make_unique<Precompiled>(decode_base64(fields.string("precompiled_charsmap"), where), where);
}

constexpr Reader<Normalizer> kReaders[] = {
    {"BertNormalizer", read_bert},
    {"ByteLevel", read_plain<ByteLevelNormalizer>},
    {"Lowercase", read_plain<Lowercase>},
    {"NFC", read_form<NormalForm::Form::nfc>},
    {"NFD", read_form<NormalForm::Form::nfd>},
    {"NFKC", read_form<NormalForm::Form::nfkc>},
    {"NFKD", read_form<NormalForm::Form::nfkd>},
    {"Nmt", read_plain<Nmt>},
    {"Precompiled", read_precompiled},
    {"Prepend", read_prepend},
    {"Replace", read_replace},
    {"Sequence", read_sequence},
    {"Strip", read_strip},
    {"StripAccents", read_plain<StripAccents>},
};

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(element value, const std::string& where) {
  return read_by_type<Normalizer>(value, where, kReaders);
}

}  // namespace clearhead::text
