// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/text/base64.h"
#include "clearhead/text/bpe.h"
#include "clearhead/text/gguf_cut.h"
#include "clearhead/text/gguf_normalizer.h"
#include "clearhead/text/gguf_pieces.h"
#include "clearhead/text/score_merges.h"
#include "clearhead/text/simple_pre_tokenizers.h"
#include "clearhead/text/text_index.h"
#include "clearhead/text/tokenizer_json.h"
#include "clearhead/text/unigram.h"
#include "clearhead/text/vocabulary.h"

namespace clearhead::text {
namespace {

// A tokenizer.json. Without model and pre-tokenizer, which may be known already, these are left out.
struct Sections {
  std::string added_tokens, normalizer = "null", pre_tokenizer = {}, post_processor, decoder, model = {};
};

std::string json_of(const Sections& sections) {
  std::string json = fmt::format(R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":{},)"
                                 R"("normalizer":{},"post_processor":{},"decoder":{})",
                                 sections.added_tokens, sections.normalizer, sections.post_processor, sections.decoder);
  if (!sections.pre_tokenizer.empty()) json += ",\"pre_tokenizer\":" + sections.pre_tokenizer;
  if (!sections.model.empty()) json += ",\"model\":" + sections.model;
  return json + "}";
}

std::string bpe_json(std::string_view options, const GgufPieces& pieces, const Bpe::Merges& merges) {
  std::string list;
  for (const auto& [left, right] : merges) {
    list += fmt::format("{}[{},{}]", list.empty() ? "" : ",", quoted_json(left), quoted_json(right));
  }
  return fmt::format(R"({{"type":"BPE","dropout":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,{},)"
                     R"("vocab":{},"merges":[{}]}})",
                     options, vocabulary_json(pieces), list);
}

Vocabulary vocabulary_of(const GgufPieces& pieces, const std::string& where) {
  std::vector<std::pair<std::string_view, uint64_t>> entries;
  for (const std::string& token : pieces.tokens) entries.emplace_back(token, entries.size());
  return Vocabulary(entries, where + " tokens");
}

const GgufCut& cut_of(const format::GgufMetadata& metadata) {
  return gguf_cut(metadata.find_word(tokenizer_key("pre")).value_or("default"), metadata.where());
}

// Pairs of pieces in the order in which they are merged. Of equal ones the first counts, as in llama.cpp.
Bpe::Merges read_merges(const format::GgufMetadata& metadata, const GgufCut& cut) {
  const auto lines = metadata.find_words(tokenizer_key("merges"));
  if (!lines && cut.needs_merges) base::fail(metadata.where(), tokenizer_key("merges"), "none");
  Bpe::Merges merges;
  if (!lines) return merges;
  merges.reserve(lines->size());
  TextIndex seen(lines->size());
  const auto line_at = [&](uint32_t index) { return (*lines)[index]; };
  for (size_t index = 0; index < lines->size(); ++index) {
    const std::string_view line = (*lines)[index];
    const size_t space = line.find(' ', 1);  // the first piece has at least one byte
    if (space == std::string_view::npos) {
      base::fail(fmt::format("{} {}[{}]", metadata.where(), tokenizer_key("merges"), index),
                 "two pieces with a space between", base::quoted(line));
    }
    if (seen.add(line, static_cast<uint32_t>(index), line_at) != TextIndex::kNone) continue;
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

Sections byte_level_sections(const format::GgufMetadata& metadata, const GgufPieces& pieces) {
  constexpr size_t kUsualBegin = 11;  // in llama.cpp, where the file names none
  const GgufCut& cut = cut_of(metadata);
  UsualEnds usual = {.begins = cut.begins, .last = kUsualBegin};
  if (cut.usual_begin) usual.first = kUsualBegin;
  return {.added_tokens = added_tokens_json(pieces, cut.mask_takes_spaces),
          .post_processor = post_processor_json(metadata, pieces, usual),
          .decoder = R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true})"};
}

std::string byte_level_json(const format::GgufMetadata& metadata, const GgufPieces& pieces) {
  const GgufCut& cut = cut_of(metadata);
  Sections sections = byte_level_sections(metadata, pieces);
  for (const std::string_view expression : cut.expressions) {
    if (expression.empty()) break;
    sections.pre_tokenizer +=
        fmt::format(R"({{"type":"Split","pattern":{{"Regex":{}}},"behavior":"Isolated","invert":false}},)",
                    quoted_json(expression));
  }
  sections.pre_tokenizer = fmt::format(
      R"({{"type":"Sequence","pretokenizers":[{}{{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,)"
      R"("use_regex":false}}]}})",
      sections.pre_tokenizer);
  sections.model = bpe_json(
      fmt::format(R"("unk_token":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":{})", cut.ignore_merges),
      pieces, read_merges(metadata, cut));
  return json_of(sections);
}

// The parts as llama.cpp has them, which no tokenizer.json can say: its categories, and gaps that part merges.
TokenizerParts byte_level_parts(const format::GgufMetadata& metadata, const GgufPieces& pieces,
                                const std::string& where) {
  const GgufCut& cut = cut_of(metadata);
  TokenizerParts parts;
  parts.pre_tokenizer = pre_tokenizer_of(cut);
  Vocabulary vocabulary = vocabulary_of(pieces, where);
  const auto merges = Bpe::in_order(vocabulary, read_merges(metadata, cut), "", where);
  const Bpe::Config config = {.ignore_merges = cut.ignore_merges, .keep_gaps = true};
  parts.model = std::make_unique<Bpe>(std::move(vocabulary), merges, config, where);
  parts = read_tokenizer_json(json_of(byte_level_sections(metadata, pieces)), where, std::move(parts));
  for (AddedToken& token : parts.added) token.ascii_space = true;
  return parts;
}

std::optional<std::string> unknown_piece(const GgufPieces& pieces) {
  const auto unknown = std::ranges::find(pieces.types, kUnknownToken);
  if (unknown == pieces.types.end()) return std::nullopt;
  return pieces.tokens[static_cast<size_t>(unknown - pieces.types.begin())];
}

Sections scored_sections(const format::GgufMetadata& metadata, const GgufPieces& pieces) {
  if (pieces.scores.empty()) base::fail(metadata.where(), tokenizer_key("scores") + " of the tokens", "none");
  const bool prefixed = metadata.find_flag(tokenizer_key("add_space_prefix")).value_or(true);
  const std::string prepend = prefixed ? "{\"type\":\"Prepend\",\"prepend\":\"\u2581\"}," : "";
  const std::string strip = prefixed ? R"(,{"type":"Strip","content":" ","start":1,"stop":0})" : "";
  return {.added_tokens = added_tokens_json(pieces),
          .normalizer = fmt::format("{{\"type\":\"Sequence\",\"normalizers\":[{}{{\"type\":\"Replace\",\"pattern\":"
                                    "{{\"String\":\" \"}},\"content\":\"\u2581\"}}]}}",
                                    prepend),
          .post_processor = post_processor_json(metadata, pieces, {.begins = true, .first = 1, .last = 2}),
          .decoder = fmt::format("{{\"type\":\"Sequence\",\"decoders\":[{{\"type\":\"Replace\",\"pattern\":"
                                 "{{\"String\":\"\u2581\"}},\"content\":\" \"}},{{\"type\":\"ByteFallback\"}},"
                                 "{{\"type\":\"Fuse\"}}{}]}}",
                                 strip)};
}

Bpe::Merges written_merges(const format::GgufMetadata& metadata, const GgufPieces& pieces) {
  const Vocabulary vocabulary = vocabulary_of(pieces, metadata.where());
  Bpe::Merges merges;
  for (const Bpe::Merge& merge : merges_by_score(vocabulary, pieces, metadata.where())) {
    merges.emplace_back(pieces.tokens[merge.left], pieces.tokens[merge.right]);
  }
  return merges;
}

std::string scored_json(const format::GgufMetadata& metadata, const GgufPieces& pieces) {
  Sections sections = scored_sections(metadata, pieces);
  sections.pre_tokenizer = "null";
  const auto unknown = unknown_piece(pieces);
  sections.model = bpe_json(fmt::format(R"("unk_token":{},"fuse_unk":true,"byte_fallback":true,"ignore_merges":false)",
                                        unknown ? quoted_json(*unknown) : "null"),
                            pieces, written_merges(metadata, pieces));
  return json_of(sections);
}

TokenizerParts scored_parts(const format::GgufMetadata& metadata, const GgufPieces& pieces, const std::string& where) {
  const Sections sections = scored_sections(metadata, pieces);
  TokenizerParts parts;
  Vocabulary vocabulary = vocabulary_of(pieces, where);
  const auto merges = merges_by_score(vocabulary, pieces, where);
  const Bpe::Config config = {.unknown_piece = unknown_piece(pieces), .fuse_unknown = true, .byte_fallback = true};
  parts.model = std::make_unique<Bpe>(std::move(vocabulary), merges, config, where);
  return read_tokenizer_json(json_of(sections), where, std::move(parts));
}

// The piece as WordPiece has it: a file holds words with a mark in front and pieces that go on with a word bare.
std::string wordpiece_of(std::string_view stored) {
  constexpr std::string_view kMark = "\u2581";
  if (stored.starts_with('[') && stored.ends_with(']')) return std::string(stored);
  if (stored.starts_with(kMark)) return std::string(stored.substr(kMark.size()));
  return "##" + std::string(stored);
}

// The token of the first of the keys that is there, or of `usual`.
size_t special_id(const format::GgufMetadata& metadata, const GgufPieces& pieces,
                  const std::vector<std::string_view>& names, std::string_view usual) {
  for (const std::string_view name : names) {
    if (const auto id = special_token(metadata, pieces, name)) return *id;
  }
  const auto found = std::ranges::find(pieces.tokens, usual);
  if (found == pieces.tokens.end()) {
    base::fail(metadata.where(), fmt::format("{} or the token {}", tokenizer_key(names.front()), usual), "neither");
  }
  return static_cast<size_t>(found - pieces.tokens.begin());
}

GgufBertNormalizer::Config normalizer_of(const format::GgufMetadata& metadata) {
  GgufBertNormalizer::Config config;
  config.lower_case = metadata.find_flag(tokenizer_key("normalizer.lowercase")).value_or(true);
  config.strip_accents = metadata.find_flag(tokenizer_key("normalizer.strip_accents")).value_or(config.lower_case);
  return config;
}

// longest: code points of a word that is not unknown for its length.
Sections wordpiece_sections(const format::GgufMetadata& metadata, const GgufPieces& stored, uint32_t longest) {
  GgufPieces pieces = stored;
  for (std::string& token : pieces.tokens) token = wordpiece_of(token);
  const auto json_of_token = [&](size_t id) { return quoted_json(pieces.tokens[id]); };
  // The second name is how files spell it.
  const size_t first = special_id(metadata, pieces, {"cls_token_id", "bos_token_id"}, "[CLS]");
  const size_t last =
      special_id(metadata, pieces, {"separator_token_id", "seperator_token_id", "eos_token_id"}, "[SEP]");
  const size_t unknown = special_id(metadata, pieces, {"unknown_token_id"}, "[UNK]");
  return {.added_tokens = added_tokens_json(pieces),
          .post_processor = fmt::format(R"({{"type":"BertProcessing","cls":[{},{}],"sep":[{},{}]}})",
                                        json_of_token(first), first, json_of_token(last), last),
          .decoder = R"({"type":"WordPiece","prefix":"##","cleanup":true})",
          .model = fmt::format(R"({{"type":"WordPiece","unk_token":{},"continuing_subword_prefix":"##",)"
                               R"("max_input_chars_per_word":{},"vocab":{}}})",
                               json_of_token(unknown), longest, vocabulary_json(pieces))};
}

std::string wordpiece_json(const format::GgufMetadata& metadata, const GgufPieces& pieces) {
  constexpr uint32_t kUsualLongest = 100;
  const GgufBertNormalizer::Config config = normalizer_of(metadata);
  Sections sections = wordpiece_sections(metadata, pieces, kUsualLongest);
  sections.normalizer = fmt::format(
      R"({{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":{},"lowercase":{}}})",
      config.strip_accents, config.lower_case);
  sections.pre_tokenizer = R"({"type":"BertPreTokenizer"})";
  return json_of(sections);
}

TokenizerParts wordpiece_parts(const format::GgufMetadata& metadata, const GgufPieces& pieces,
                               const std::string& where) {
  TokenizerParts parts;
  parts.normalizer = std::make_unique<GgufBertNormalizer>(normalizer_of(metadata));
  parts.pre_tokenizer = std::make_unique<WhitespaceSplit>();
  return read_tokenizer_json(json_of(wordpiece_sections(metadata, pieces, UINT32_MAX)), where, std::move(parts));
}

// The bytes of precompiled_charsmap, or nothing.
std::string charsmap_of(const format::GgufMetadata& metadata) {
  std::string bytes;
  for (const int64_t byte :
       metadata.find_integers(tokenizer_key("precompiled_charsmap")).value_or(std::vector<int64_t>{})) {
    if (byte < -0x80 || byte > 0xff) {
      base::fail(metadata.where(), tokenizer_key("precompiled_charsmap") + " of bytes", fmt::format("{}", byte));
    }
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

bool flag_of(const format::GgufMetadata& metadata, std::string_view name) {
  return metadata.find_flag(tokenizer_key(name)).value_or(false);
}

// How pieces are chosen: those of the types normal, user-defined and unused, the second as if their logarithm were 0.
struct UnigramPieces {
  std::vector<std::pair<std::string_view, double>> scored;
  Unigram::Config config;
};

UnigramPieces unigram_pieces(const format::GgufMetadata& metadata, const GgufPieces& pieces) {
  constexpr size_t kUsualUnknown = 2;
  if (pieces.scores.empty()) base::fail(metadata.where(), tokenizer_key("scores") + " of the tokens", "none");
  UnigramPieces result;
  result.config.unknown_id = special_token(metadata, pieces, "unknown_token_id", kUsualUnknown);
  for (size_t id = 0; id < pieces.tokens.size(); ++id) {
    const int64_t type = pieces.types[id];
    const double score = type == kUserDefinedToken ? 0 : pieces.scores[id];
    result.scored.emplace_back(pieces.tokens[id], score);
    result.config.unmatched.push_back(type != kNormalToken && type != kUserDefinedToken && type != kUnusedToken);
    if (type == kNormalToken)
      result.config.smallest_score = std::min(result.config.smallest_score.value_or(score), score);
  }
  return result;
}

Sections unigram_sections(const format::GgufMetadata& metadata, const GgufPieces& pieces) {
  return {
      .added_tokens = added_tokens_json(pieces),
      .post_processor = post_processor_json(metadata, pieces, {.ends = true, .last = 1}),
      .decoder = fmt::format("{{\"type\":\"Metaspace\",\"replacement\":\"\u2581\",\"prepend_scheme\":\"{}\",\"split\":"
                             "false}}",
                             flag_of(metadata, "add_space_prefix") ? "always" : "never")};
}

std::string unigram_json(const format::GgufMetadata& metadata, const GgufPieces& pieces) {
  const UnigramPieces scored = unigram_pieces(metadata, pieces);
  Sections sections = unigram_sections(metadata, pieces);
  if (const std::string map = charsmap_of(metadata); !map.empty()) {
    sections.normalizer = fmt::format(R"({{"type":"Precompiled","precompiled_charsmap":"{}"}})", encode_base64(map));
  }
  sections.pre_tokenizer = sections.decoder;
  std::string list;
  for (const auto& [piece, score] : scored.scored) {
    list += fmt::format("{}[{},{:e}]", list.empty() ? "" : ",", quoted_json(piece), score);
  }
  sections.model = fmt::format(R"({{"type":"Unigram","unk_id":{},"vocab":[{}],"byte_fallback":false}})",
                               scored.config.unknown_id.value_or(0), list);
  return json_of(sections);
}

TokenizerParts unigram_parts(const format::GgufMetadata& metadata, const GgufPieces& pieces, const std::string& where) {
  GgufUnigramNormalizer::Config normal = {.prefix = flag_of(metadata, "add_space_prefix"),
                                          .merge_spaces = flag_of(metadata, "remove_extra_whitespaces")};
  if (const std::string map = charsmap_of(metadata); !map.empty()) {
    normal.map = Precompiled(map, fmt::format("{} {}", metadata.where(), tokenizer_key("precompiled_charsmap")));
  }
  for (size_t id = 0; id < pieces.tokens.size(); ++id) {
    if (pieces.types[id] == kUserDefinedToken) normal.user_defined.push_back(pieces.tokens[id]);
  }
  TokenizerParts parts;
  parts.normalizer = std::make_unique<GgufUnigramNormalizer>(std::move(normal));
  UnigramPieces scored = unigram_pieces(metadata, pieces);
  parts.model = std::make_unique<Unigram>(std::move(scored.scored), scored.config, where);
  return read_tokenizer_json(json_of(unigram_sections(metadata, pieces)), where, std::move(parts));
}

using Read = TokenizerParts (*)(const format::GgufMetadata&, const GgufPieces&, const std::string&);
using Write = std::string (*)(const format::GgufMetadata&, const GgufPieces&);

struct ModelKind {
  std::string_view name;
  Read read;
  Write write;
};

constexpr ModelKind kModels[] = {{"gpt2", byte_level_parts, byte_level_json},
                                 {"llama", scored_parts, scored_json},
                                 {"bert", wordpiece_parts, wordpiece_json},
                                 {"t5", unigram_parts, unigram_json}};

const ModelKind& model_of(const format::GgufMetadata& metadata) {
  const std::string_view name = metadata.word(tokenizer_key("model"));
  std::string known;
  for (const ModelKind& model : kModels) {
    if (model.name == name) return model;
    known += (known.empty() ? "" : ", ") + std::string(model.name);
  }
  base::fail(metadata.where(), fmt::format("{} to be one of: {}", tokenizer_key("model"), known), base::quoted(name));
}

}  // namespace

std::string gguf_tokenizer_json(const format::GgufMetadata& metadata) {
  return model_of(metadata).write(metadata, read_gguf_pieces(metadata));
}

Tokenizer gguf_tokenizer(const format::GgufMetadata& metadata) {
  const std::string where = metadata.where() + " tokenizer";
  return Tokenizer::from_parts(model_of(metadata).read(metadata, read_gguf_pieces(metadata), where), where);
}

}  // namespace clearhead::text
