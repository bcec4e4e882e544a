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

// A token that is put around every text, as {"SpecialToken": ...}, and what it stands for; empty if there is none.
struct Around {
  std::string item, special;
};

Around around(const format::GgufMetadata& metadata, const Pieces& pieces, std::string_view name, bool usual) {
  const std::string id_key = key(fmt::format("{}_token_id", name));
  const auto id = metadata.find_count(id_key);
  if (!metadata.find_flag(key(fmt::format("add_{}_token", name))).value_or(usual) || !id) return {};
  if (*id >= pieces.tokens.size()) {
    base::fail(metadata.where(), fmt::format("{} below {}", id_key, pieces.tokens.size()), fmt::format("{}", *id));
  }
  const std::string token = quoted_json(pieces.tokens[*id]);
  return {fmt::format(R"({{"SpecialToken":{{"id":{},"type_id":0}}}})", token),
          fmt::format(R"({0}:{{"id":{0},"ids":[{1}],"tokens":[{0}]}})", token, *id)};
}

// The tokens that are put in front of and behind every text, or null. begins: as a rule there is one in front.
std::string post_processor_json(const format::GgufMetadata& metadata, const Pieces& pieces, bool begins) {
  const Around first = around(metadata, pieces, "bos", begins), last = around(metadata, pieces, "eos", false);
  if (first.item.empty() && last.item.empty()) return "null";
  std::string items = first.item, specials = first.special;
  items += std::string(items.empty() ? "" : ",") + R"({"Sequence":{"id":"A","type_id":0}})";
  if (!last.item.empty()) items += "," + last.item;
  if (!last.item.empty() && last.special != first.special) specials += (specials.empty() ? "" : ",") + last.special;
  return fmt::format(R"({{"type":"TemplateProcessing","single":[{}],"pair":[],"special_tokens":{{{}}}}})", items,
                     specials);
}

constexpr std::string_view kByteLevel =
    R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";

// How the names of tokenizer.ggml.pre cut words.
constexpr std::string_view kLlama3Cut =
    R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})";
constexpr std::string_view kQwen2Cut =
    R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})";
constexpr std::string_view kDigitsCut =
    R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}]})";

// Names of one kind, with spaces between. The lists are those of llama.cpp.
struct Cut {
  std::string_view names, json;
  bool ignore_merges = false;
  bool begins = false;  // a text begins with a token of its own unless the file says otherwise
};

constexpr Cut kCuts[] = {{"default gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de a.x-4.0 mellum "
                          "modern-bert gigachat mpt olmo jais trillion granite-docling",
                          kByteLevel},
                         {"smollm starcoder refact command-r codeshell exaone minerva-7b", kDigitsCut},
                         {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2", kLlama3Cut, true, true},
                         {"dbrx smaug-bpe", kLlama3Cut},
                         {"qwen2 deepseek-r1-qwen stablelm2 megrez hunyuan", kQwen2Cut}};

bool has_name(std::string_view names, std::string_view name) {
  if (name.empty() || name.find(' ') != std::string_view::npos) return false;
  return fmt::format(" {} ", names).find(fmt::format(" {} ", name)) != std::string::npos;
}

const Cut& cut_of(const format::GgufMetadata& metadata) {
  const std::string_view name = metadata.find_word(key("pre")).value_or("default");
  std::string known;
  for (const Cut& cut : kCuts) {
    if (has_name(cut.names, name)) return cut;
    known += (known.empty() ? "" : " ") + std::string(cut.names);
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
      added_tokens_json(pieces), cut.json, post_processor_json(metadata, pieces, cut.begins), cut.ignore_merges,
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

// The piece as WordPiece has it: a file holds words with a mark in front and pieces that go on with a word bare.
std::string wordpiece_of(std::string_view stored) {
  constexpr std::string_view kMark = "\u2581";
  if (stored.starts_with('[') && stored.ends_with(']')) return std::string(stored);
  if (stored.starts_with(kMark)) return std::string(stored.substr(kMark.size()));
  return "##" + std::string(stored);
}

// The token of the first of the keys that is there, or of `usual`.
size_t special_id(const format::GgufMetadata& metadata, const Pieces& pieces, std::vector<std::string_view> names,
                  std::string_view usual) {
  for (const std::string_view name : names) {
    const auto id = metadata.find_count(key(name));
    if (!id) continue;
    if (*id < pieces.tokens.size()) return *id;
    base::fail(metadata.where(), fmt::format("{} below {}", key(name), pieces.tokens.size()), fmt::format("{}", *id));
  }
  const auto found = std::ranges::find(pieces.tokens, usual);
  if (found == pieces.tokens.end()) {
    base::fail(metadata.where(), fmt::format("{} or the token {}", key(names.front()), usual), "neither");
  }
  return static_cast<size_t>(found - pieces.tokens.begin());
}

std::string wordpiece_json(const format::GgufMetadata& metadata, const Pieces& stored) {
  std::vector<std::string> written;
  written.reserve(stored.tokens.size());
  for (const std::string_view token : stored.tokens) written.push_back(wordpiece_of(token));
  Pieces pieces = stored;
  pieces.tokens.assign(written.begin(), written.end());
  const auto json_of = [&](size_t id) { return quoted_json(pieces.tokens[id]); };
  // The second name is how files spell it.
  const size_t first = special_id(metadata, pieces, {"cls_token_id", "bos_token_id"}, "[CLS]");
  const size_t last =
      special_id(metadata, pieces, {"separator_token_id", "seperator_token_id", "eos_token_id"}, "[SEP]");
  const size_t unknown = special_id(metadata, pieces, {"unknown_token_id"}, "[UNK]");
  return fmt::format(
      R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":{},"normalizer":{{"type":"BertNormalizer",)"
      R"("clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true}},"pre_tokenizer":)"
      R"({{"type":"BertPreTokenizer"}},"post_processor":{{"type":"BertProcessing","cls":[{},{}],"sep":[{},{}]}},)"
      R"("decoder":{{"type":"WordPiece","prefix":"##","cleanup":true}},"model":{{"type":"WordPiece","unk_token":{},)"
      R"("continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{}}}}})",
      added_tokens_json(pieces), json_of(first), first, json_of(last), last, json_of(unknown), vocabulary_json(pieces));
}

}  // namespace

std::string gguf_tokenizer_json(const format::GgufMetadata& metadata) {
  const std::string_view model = metadata.word(key("model"));
  const Pieces pieces = read_pieces(metadata);
  if (model == "gpt2") return byte_level_json(metadata, pieces);
  if (model == "llama") return scored_json(metadata, pieces);
  if (model == "bert") return wordpiece_json(metadata, pieces);
  base::fail(metadata.where(), key("model") + " to be one of: gpt2, llama, bert", base::quoted(model));
}

Tokenizer gguf_tokenizer(const format::GgufMetadata& metadata) {
  return Tokenizer::from_json(gguf_tokenizer_json(metadata), metadata.where() + " tokenizer");
}

}  // namespace clearhead::text
