// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/component_json.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/text/bert_pre_tokenizer.h"
#include "clearhead/text/metaspace_json.h"
#include "clearhead/text/simple_pre_tokenizers.h"

namespace clearhead::text {
namespace {

using simdjson::dom::element;

std::unique_ptr<PreTokenizer> read_sequence(JsonFields& fields) {
  const std::string where = fields.where() + " pretokenizers";
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  for (const element step : list_of(fields.required("pretokenizers"), where)) {
    steps.push_back(read_pre_tokenizer(step, fmt::format("{}[{}]", where, steps.size())));
  }
  return std::make_unique<PreTokenizerSequence>(std::move(steps));
}

std::unique_ptr<PreTokenizer> read_metaspace(JsonFields& fields) {
  return std::make_unique<Metaspace>(read_metaspace_config(fields));
}

template <class Kind>
std::unique_ptr<PreTokenizer> read_plain(JsonFields&) {
  return std::make_unique<Kind>();
}

constexpr Reader<PreTokenizer> kReaders[] = {
    {"BertPreTokenizer", read_plain<BertPreTokenizer>},
    {"Metaspace", read_metaspace},
    {"Sequence", read_sequence},
    {"WhitespaceSplit", read_plain<WhitespaceSplit>},
};

}  // namespace

std::unique_ptr<PreTokenizer> read_pre_tokenizer(element value, const std::string& where) {
  return read_by_type<PreTokenizer>(value, where, kReaders);
}

}  // namespace clearhead::text
