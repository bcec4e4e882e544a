// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/component_json.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/text/metaspace_json.h"

namespace clearhead::text {
namespace {

using simdjson::dom::element;

std::unique_ptr<Decoder> read_wordpiece(JsonFields& fields) {
  std::string prefix(fields.string("prefix"));
  return std::make_unique<WordPieceDecoder>(std::move(prefix), fields.boolean("cleanup"));
}

std::unique_ptr<Decoder> read_metaspace(JsonFields& fields) {
  return std::make_unique<MetaspaceDecoder>(read_metaspace_config(fields));
}

std::unique_ptr<Decoder> read_sequence(JsonFields& fields) {
  const std::string where = fields.where() + " decoders";
  std::vector<std::unique_ptr<Decoder>> steps;
  for (const element step : list_of(fields.required("decoders"), where)) {
    steps.push_back(read_decoder(step, fmt::format("{}[{}]", where, steps.size())));
  }
  return std::make_unique<DecoderSequence>(std::move(steps));
}

constexpr Reader<Decoder> kReaders[] = {
    {"Metaspace", read_metaspace},
    {"Sequence", read_sequence},
    {"WordPiece", read_wordpiece},
};

}  // namespace

std::unique_ptr<Decoder> read_decoder(element value, const std::string& where) {
  return read_by_type<Decoder>(value, where, kReaders);
}

}  // namespace clearhead::text
