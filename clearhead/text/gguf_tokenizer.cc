// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/base/utf8.h"

namespace clearhead::text {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";
constexpr int64_t kUnknown = 2, kControl = 3, kUserDefined = 4;  // token types

// A text as JSON has it.
std::string quoted_json(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

// What the metadata hold, with counts that fit each other.
struct Pieces {
  std::vector<std::string_view> tokens;
  std::vector<int64_t> types;  // [tokens]
  std::vector<float> scores;   // [tokens], or empty
};

std::string key(std::string_view name) { return std::string(kPrefix) + std::string(name); }

[[noreturn]] void refuse_count(const format::GgufMetadata& metadata, std::string_view name, size_t expected,
                               size_t found) {
  base::fail(metadata.where(), fmt::format("{} of {} elements, one for each token", key(name), expected),
             fmt::format("{}", found));
}

Pieces read_pieces(const format::GgufMetadata& metadata) {
  Pieces pieces;
  pieces.tokens = metadata.find_words(key("tokens")).value_or(std::vector<std::string_view>{});
  const size_t count = pieces.tokens.size();
  if (count == 0) base::fail(metadata.where(), key("tokens") + " with at least one token", "none");
  pieces.types = metadata.find_integers(key("token_type")).value_or(std::vector<int64_t>(count, 1));
  if (pieces.types.size() != count) refuse_count(metadata, "token_type", count, pieces.types.size());
  pieces.scores = metadata.find_numbers(key("scores")).value_or(std::vector<float>{});
  if (!pieces.scores.empty() && pieces.scores.size() != count) {
    refuse_count(metadata, "scores", count, pieces.scores.size());
  }
  for (size_t id = 0; id < count; ++id) {
    if (base::first_invalid_utf8(pieces.tokens[id])) {
      base::fail(metadata.where(), fmt::format("token {} in UTF-8", id), base::quoted(pieces.tokens[id]));
    }
  }
  return pieces;
}

std::string vocabulary_json(const Pieces& pieces) {
  std::string json;
  json.reserve(pieces.tokens.size() * 16);
  for (size_t id = 0; id < pieces.tokens.size(); ++id) {
    json += fmt::format("{}{}:{}", id == 0 ? "" : ",", quoted_json(pieces.tokens[id]), id);
  }
  return "{" + json + "}";
}

// Tokens that are cut out of the text as it stands.
std::string added_tokens_json(const Pieces& pieces) {
  std::string json;
  for (size_t id = 0; id < pieces.tokens.size(); ++id) {
    const int64_t type = pieces.types[id];
    if (type != kControl && type != kUserDefined) continue;
    json += fmt::format(
        R"({}{{"id":{},"content":{},"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":{}}})",
        json.empty() ? "" : ",", id, quoted_json(pieces.tokens[id]), type == kControl);
  }
  return "[" + json + "]";
}

// The token that is put in front of every text, or null.
std::string post_processor_json(const format::GgufMetadata& metadata, const Pieces& pieces, bool usual) {
  const auto id = metadata.find_count(key("bos_token_id"));
  if (!metadata.find_flag(key("add_bos_token")).value_or(usual) || !id) return "null";
  if (*id >= pieces.tokens.size()) {
    base::fail(metadata.where(), fmt::format("{} below {}", key("bos_token_id"), pieces.tokens.size()),
               fmt::format("{}", *id));
  }
  const std::string token = quoted_json(pieces.tokens[*id]);
  return fmt::format(
      R"({{"type":"TemplateProcessing","single":[{{"SpecialToken":{{"id":{0},"type_id":0}}}},{{"Sequence":{{"id":"A","type_id":0}}}}],)"
      R"("pair":[{{"SpecialToken":{{"id":{0},"type_id":0}}}},{{"Sequence":{{"id":"A","type_id":0}}}},{{"Sequence":{{"id":"B","type_id":1}}}}],)"
      R"("special_tokens":{{{0}:{{"id":{0},"ids":[{1}],"tokens":[{0}]}}}}}})",
      token, *id);
}

constexpr std::string_view kByteLevel =
    R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";

// How the names of tokenizer.ggml.pre cut words.
struct Cut {
  std::string_view name, json;
  bool ignore_merges;
};

constexpr std::string_view kLlama3Cut =
    R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})";
constexpr std::string_view kQwen2Cut =
    R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})";
constexpr std::string_view kDigitsCut =
    R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}]})";

constexpr Cut kCuts[] = {{"default", kByteLevel, false},  {"gpt-2", kByteLevel, false}, {"smollm", kDigitsCut, false},
                         {"llama-bpe", kLlama3Cut, true}, {"llama3", kLlama3Cut, true}, {"llama-v3", kLlama3Cut, true},
                         {"qwen2", kQwen2Cut, false}};

const Cut& cut_of(const format::GgufMetadata& metadata) {
  const std::string_view name = metadata.find_word(key("pre")).value_or("default");
  std::string known;
  for (const Cut& cut : kCuts) {
    if (cut.name == name) return cut;
    known += (known.empty() ? "" : ", ") + std::string(cut.name);
  }
  base::fail(metadata.where(), fmt::format("{} to be one of: {}", key("pre"), known), base::quoted(name));
}

std::string byte_level_json(const format::GgufMetadata& metadata, const Pieces& pieces) {
  const Cut& cut = cut_of(metadata);
  std::string merges;
  for (const std::string_view merge : metadata.find_words(key("merges")).value_or(std::vector<std::string_view>{})) {
    merges += (merges.empty() ? "" : ",") + quoted_json(merge);
  }
  return fmt::format(
      R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":{},"normalizer":null,"pre_tokenizer":{},)"
      R"("post_processor":{},"decoder":{{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}},)"
      R"("model":{{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,)"
      R"("fuse_unk":false,"byte_fallback":false,"ignore_merges":{},"vocab":{},"merges":[{}]}}}})",
      added_tokens_json(pieces), cut.json, post_processor_json(metadata, pieces, false), cut.ignore_merges,
      vocabulary_json(pieces), merges);
}

// Every way to put a piece together from two others, best score first: what merging by score does, written as merges.
std::string merges_by_score(const Pieces& pieces) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < pieces.tokens.size(); ++id) ids.emplace(pieces.tokens[id], id);
  struct Merge {
    float score;
    size_t piece, cut;
  };
  std::vector<Merge> merges;
  for (size_t id = 0; id < pieces.tokens.size(); ++id) {
    const std::string_view piece = pieces.tokens[id];
    if (pieces.types[id] == kControl || pieces.types[id] == kUserDefined) continue;
    for (size_t cut = 1; cut < piece.size(); ++cut) {
      if ((static_cast<unsigned char>(piece[cut]) & 0xc0) == 0x80) continue;  // inside a character
      if (ids.contains(piece.substr(0, cut)) && ids.contains(piece.substr(cut))) {
        merges.push_back({pieces.scores[id], id, cut});
      }
    }
  }
  std::ranges::stable_sort(merges, [](const Merge& a, const Merge& b) { return a.score > b.score; });
  std::string json;
  for (const Merge& merge : merges) {
    const std::string_view piece = pieces.tokens[merge.piece];
    json += fmt::format("{}[{},{}]", json.empty() ? "" : ",", quoted_json(piece.substr(0, merge.cut)),
                        quoted_json(piece.substr(merge.cut)));
  }
  return json;
}

std::string scored_json(const format::GgufMetadata& metadata, const Pieces& pieces) {
  if (pieces.scores.empty()) base::fail(metadata.where(), key("scores") + " of the tokens", "none");
  const bool prefixed = metadata.find_flag(key("add_space_prefix")).value_or(true);
  const auto unknown = std::ranges::find(pieces.types, kUnknown);
  const std::string unknown_piece =
      unknown == pieces.types.end() ? "null"
                                    : quoted_json(pieces.tokens[static_cast<size_t>(unknown - pieces.types.begin())]);
  const std::string prepend = prefixed ? "{\"type\":\"Prepend\",\"prepend\":\"\u2581\"}," : "";
  const std::string strip = prefixed ? R"(,{"type":"Strip","content":" ","start":1,"stop":0})" : "";
  return fmt::format(
      "{{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":{},"
      "\"normalizer\":{{\"type\":\"Sequence\",\"normalizers\":[{}"
      "{{\"type\":\"Replace\",\"pattern\":{{\"String\":\" \"}},\"content\":\"\u2581\"}}]}},\"pre_tokenizer\":null,"
      "\"post_processor\":{},\"decoder\":{{\"type\":\"Sequence\",\"decoders\":[{{\"type\":\"Replace\",\"pattern\":"
      "{{\"String\":\"\u2581\"}},\"content\":\" \"}},{{\"type\":\"ByteFallback\"}},{{\"type\":\"Fuse\"}}{}]}},"
      "\"model\":{{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":{},\"continuing_subword_prefix\":null,"
      "\"end_of_word_suffix\":null,\"fuse_unk\":true,\"byte_fallback\":true,\"ignore_merges\":false,\"vocab\":{},"
      "\"merges\":[{}]}}}}",
      added_tokens_json(pieces), prepend, post_processor_json(metadata, pieces, true), strip, unknown_piece,
      vocabulary_json(pieces), merges_by_score(pieces));
}

}  // namespace

std::string gguf_tokenizer_json(const format::GgufMetadata& metadata) {
  const std::string_view model = metadata.word(key("model"));
  const Pieces pieces = read_pieces(metadata);
  if (model == "gpt2") return byte_level_json(metadata, pieces);
  if (model == "llama") return scored_json(metadata, pieces);
  base::fail(metadata.where(), key("model") + " to be one of: gpt2, llama", base::quoted(model));
}

Tokenizer gguf_tokenizer(const format::GgufMetadata& metadata) {
  return Tokenizer::from_json(gguf_tokenizer_json(metadata), metadata.where() + " tokenizer");
}

}  // namespace clearhead::text
