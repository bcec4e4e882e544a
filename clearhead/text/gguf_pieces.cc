// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/gguf_pieces.h"

#include <fmt/format.h>

#include <cmath>

#include "clearhead/base/error.h"
#include "clearhead/base/utf8.h"
#include "clearhead/text/text_index.h"

namespace clearhead::text {
namespace {

[[noreturn]] void refuse_count(const format::GgufMetadata& metadata, std::string_view name, size_t expected,
                               size_t found) {
  base::fail(metadata.where(), fmt::format("{} of {} elements, one for each token", tokenizer_key(name), expected),
             fmt::format("{}", found));
}

void check_tokens(const format::GgufMetadata& metadata, const GgufPieces& pieces) {
  TextIndex ids(pieces.tokens.size());
  const auto token_at = [&](uint32_t id) { return std::string_view(pieces.tokens[id]); };
  for (uint32_t id = 0; id < pieces.tokens.size(); ++id) {
    const std::string& token = pieces.tokens[id];
    if (base::first_invalid_utf8(token)) {
      base::fail(metadata.where(), fmt::format("token {} in UTF-8", id), base::quoted(token));
    }
    if (const uint32_t first = ids.add(token, id, token_at); first != TextIndex::kNone) {
      base::fail(metadata.where(), "each token once",
                 fmt::format("{} with ids {} and {}", base::quoted(token), first, id));
    }
    if (!pieces.scores.empty() && !std::isfinite(pieces.scores[id])) {
      base::fail(metadata.where(), fmt::format("a finite score of token {}", id), fmt::format("{}", pieces.scores[id]));
    }
  }
}

// A token that is put around every text, as {"SpecialToken": ...}, and what it stands for; empty if there is none.
struct Around {
  std::string item, special;
};

Around around(const format::GgufMetadata& metadata, const GgufPieces& pieces, std::string_view name, bool is_usual,
              std::optional<size_t> usual_id) {
  if (!metadata.find_flag(tokenizer_key(fmt::format("add_{}_token", name))).value_or(is_usual)) return {};
  const auto id = special_token(metadata, pieces, fmt::format("{}_token_id", name), usual_id);
  if (!id) return {};
  const std::string token = quoted_json(pieces.tokens[*id]);
  return {fmt::format(R"({{"SpecialToken":{{"id":{},"type_id":0}}}})", token),
          fmt::format(R"({0}:{{"id":{0},"ids":[{1}],"tokens":[{0}]}})", token, *id)};
}

}  // namespace

std::string tokenizer_key(std::string_view name) { return "tokenizer.ggml." + std::string(name); }

GgufPieces read_gguf_pieces(const format::GgufMetadata& metadata) {
  GgufPieces pieces;
  for (const auto token : metadata.find_words(tokenizer_key("tokens")).value_or(std::vector<std::string_view>{})) {
    pieces.tokens.push_back(token.empty() ? fmt::format("[EMPTY_{}]", pieces.tokens.size()) : std::string(token));
  }
  const size_t count = pieces.tokens.size();
  if (count == 0) base::fail(metadata.where(), tokenizer_key("tokens") + " with at least one token", "none");
  pieces.types =
      metadata.find_integers(tokenizer_key("token_type")).value_or(std::vector<int64_t>(count, kNormalToken));
  if (pieces.types.size() != count) refuse_count(metadata, "token_type", count, pieces.types.size());
  pieces.scores = metadata.find_numbers(tokenizer_key("scores")).value_or(std::vector<float>{});
  if (!pieces.scores.empty() && pieces.scores.size() != count) {
    refuse_count(metadata, "scores", count, pieces.scores.size());
  }
  check_tokens(metadata, pieces);
  return pieces;
}

std::optional<size_t> special_token(const format::GgufMetadata& metadata, const GgufPieces& pieces,
                                    std::string_view name, std::optional<size_t> usual) {
  const std::string key = tokenizer_key(name);
  const size_t count = pieces.tokens.size();
  const auto id = metadata.find_count(key);
  if (!id) return usual && *usual < count ? usual : std::nullopt;
  if (*id >= count) base::fail(metadata.where(), fmt::format("{} below {}", key, count), fmt::format("{}", *id));
  return *id;
}

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

std::string vocabulary_json(const GgufPieces& pieces) {
  std::string json;
  json.reserve(pieces.tokens.size() * 16);
  for (size_t id = 0; id < pieces.tokens.size(); ++id) {
    json += fmt::format("{}{}:{}", id == 0 ? "" : ",", quoted_json(pieces.tokens[id]), id);
  }
  return "{" + json + "}";
}

std::string added_tokens_json(const GgufPieces& pieces, bool mask_takes_spaces) {
  std::string json;
  for (size_t id = 0; id < pieces.tokens.size(); ++id) {
    const int64_t type = pieces.types[id];
    if (type != kUnknownToken && type != kControlToken && type != kUserDefinedToken) continue;
    json += fmt::format(
        R"({}{{"id":{},"content":{},"single_word":false,"lstrip":{},"rstrip":false,"normalized":false,"special":{}}})",
        json.empty() ? "" : ",", id, quoted_json(pieces.tokens[id]), mask_takes_spaces && pieces.tokens[id] == "<mask>",
        type != kUserDefinedToken);
  }
  return "[" + json + "]";
}

std::string post_processor_json(const format::GgufMetadata& metadata, const GgufPieces& pieces,
                                const UsualEnds& usual) {
  const Around first = around(metadata, pieces, "bos", usual.begins, usual.first);
  const Around last = around(metadata, pieces, "eos", usual.ends, usual.last);
  if (first.item.empty() && last.item.empty()) return "null";
  std::string items = first.item, specials = first.special;
  items += std::string(items.empty() ? "" : ",") + R"({"Sequence":{"id":"A","type_id":0}})";
  if (!last.item.empty()) items += "," + last.item;
  if (!last.item.empty() && last.special != first.special) specials += (specials.empty() ? "" : ",") + last.special;
  return fmt::format(R"({{"type":"TemplateProcessing","single":[{}],"pair":[],"special_tokens":{{{}}}}})", items,
                     specials);
}

}  // namespace clearhead::text
