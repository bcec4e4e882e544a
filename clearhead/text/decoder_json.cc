// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/component_json.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/text/byte_level.h"
#include "clearhead/text/metaspace_json.h"
#include "clearhead/text/pattern_json.h"
#include "clearhead/text/simple_decoders.h"
#include "clearhead/text/valid_utf8.h"

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
  for (const element step : steps_of(fields.required("decoders"), where)) {
    steps.push_back(read_decoder(step, fmt::format("{}[{}]", where, steps.size())));
  }
  return std::make_unique<DecoderSequence>(std::move(steps));
}

// The fields are those of the pre-tokenizer ByteLevel, which mean nothing here.
std::unique_ptr<Decoder> read_byte_level(JsonFields& fields) {
  for (const char* name : {"add_prefix_space", "trim_offsets", "use_regex"}) {
    if (fields.has(name)) fields.boolean(name);
  }
  return std::make_unique<ByteLevelDecoder>();
}

std::unique_ptr<Decoder> read_replace(JsonFields& fields) {
  auto pattern = read_pattern(fields.required("pattern"), fields.where() + " pattern");
  return std::make_unique<ReplaceDecoder>(std::move(pattern), std::string(fields.string("content")));
}

std::unique_ptr<Decoder> read_strip(JsonFields& fields) {
  std::string character(fields.string("content"));
  if (character.empty() || code_point_at(character, 0).length != character.size()) {
    base::fail(fields.where() + " content", "one character", base::quoted(character));
  }
  const uint64_t start = fields.number("start");
  return std::make_unique<StripDecoder>(std::move(character), start, fields.number("stop"));
}

std::unique_ptr<Decoder> read_bpe(JsonFields& fields) {
  std::string suffix(fields.string("suffix"));
  if (suffix.empty()) base::fail(fields.where() + " suffix", "a text", "an empty one");
  return std::make_unique<BpeDecoder>(std::move(suffix));
}

std::unique_ptr<Decoder> read_ctc(JsonFields& fields) {
  const auto text = [&](const char* name) {
    std::string value(fields.string(name));
    if (value.empty()) base::fail(fields.where() + " " + name, "a text", "an empty one");
    return value;
  };
  CtcDecoder::Config config;
  config.pad_piece = text("pad_token");
  config.word_end = text("word_delimiter_token");
  config.cleanup = fields.boolean("cleanup");
  return std::make_unique<CtcDecoder>(std::move(config));
}

template <class Kind>
std::unique_ptr<Decoder> read_plain(JsonFields&) {
  return std::make_unique<Kind>();
}

constexpr Reader<Decoder> kReaders[] = {
    {"BPEDecoder", read_bpe},
    {"ByteFallback", read_plain<ByteFallbackDecoder>},
    {"ByteLevel", read_byte_level},
    {"CTC", read_ctc},
    {"Fuse", read_plain<FuseDecoder>},
    {"Metaspace", read_metaspace},
    {"Replace", read_replace},
    {"Sequence", read_sequence},
    {"Strip", read_strip},
    {"WordPiece", read_wordpiece},
};

}  // namespace

std::unique_ptr<Decoder> read_decoder(element value, const std::string& where) {
  return read_by_type<Decoder>(value, where, kReaders);
}

}  // namespace clearhead::text
