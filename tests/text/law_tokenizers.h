// SPDX-License-Identifier: Apache-2.0
// Small tokenizers of every kind that can write any text.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "clearhead/base/utf8.h"
#include "clearhead/text/byte_level.h"
#include "tests/text/small_tokenizer.h"

namespace clearhead::text::tests {

inline nlohmann::json empty_json() {
  return {{"version", "1.0"},          {"truncation", nullptr},
          {"padding", nullptr},        {"normalizer", nullptr},
          {"pre_tokenizer", nullptr},  {"post_processor", nullptr},
          {"decoder", nullptr},        {"added_tokens", nlohmann::json::array()},
          {"model", {{"type", "BPE"}}}};
}

// Byte-level pairs: a piece for each byte, "<|x|>" and "ba ba" as added tokens, and merges that go deep and across the
// bytes of characters. pre_tokenizer: how words are cut before bytes are written. trim_offsets: white space is taken
// out of spans; with prefix_space, but for a space in front of the text.
inline nlohmann::json byte_level_json(const nlohmann::json& pre_tokenizer, bool trim_offsets,
                                      bool prefix_space = false) {
  nlohmann::json json = empty_json(), vocabulary;
  std::vector<std::string> bytes(256);
  for (unsigned byte = 0; byte < 256; ++byte) {
    base::append_utf8(bytes[byte], character_of_byte(static_cast<unsigned char>(byte)));
    vocabulary[bytes[byte]] = byte;
  }
  auto merges = nlohmann::json::array();
  const auto merge = [&](const std::string& left, const std::string& right) {
    if (!vocabulary.contains(left + right)) vocabulary[left + right] = vocabulary.size();
    merges.push_back(nlohmann::json::array({left, right}));
  };
  for (std::string run : {"a", " ", "!", "1"}) {  // pairs of pairs of pairs
    if (run == " ") run = bytes[' '];
    for (int i = 0; i < 4; ++i, run += run) merge(run, run);
  }
  merge("a", "b");
  merge(bytes[' '], "a");
  merge(bytes[' '], "ab");
  merge(bytes[' '], bytes[0xe4]);  // a space and the first byte of a Han character
  merge(bytes[0xbd], bytes[0xa0]);
  merge(bytes[0xe4], bytes[0xbd] + bytes[0xa0]);
  merge(bytes[0x8d], bytes[0xf0]);  // the end of one character and the beginning of another
  json["model"]["vocab"] = vocabulary;
  json["model"]["merges"] = merges;
  const auto count = static_cast<int>(vocabulary.size());
  json["added_tokens"] = {added_token(count, "<|x|>"), added_token(count + 1, "ba ba")};
  json["added_tokens"][0]["special"] = true;
  json["pre_tokenizer"] = pre_tokenizer;
  json["decoder"] = {{"type", "ByteLevel"}};
  if (trim_offsets) {
    json["post_processor"] = {{"type", "ByteLevel"}, {"add_prefix_space", prefix_space}, {"trim_offsets", true}};
  }
  return json;
}

inline nlohmann::json byte_level_step(bool use_regex, bool prefix_space = false) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", prefix_space}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

// Byte-level pairs that put a space in front of what has none, with RoBERTa's special tokens.
inline nlohmann::json roberta_json(bool use_regex, bool trim_offsets) {
  nlohmann::json json = byte_level_json(byte_level_step(use_regex, true), false);
  const nlohmann::json special = {"<|x|>", json["added_tokens"][0]["id"]};
  json["post_processor"] = {{"type", "RobertaProcessing"},
                            {"sep", special},
                            {"cls", special},
                            {"trim_offsets", trim_offsets},
                            {"add_prefix_space", true}};
  return json;
}

// <0x00> to <0xFF>, and pieces over the mark of a space.
inline std::vector<std::string> marked_pieces() {
  std::vector<std::string> pieces = {"<unk>", "<s>"};
  for (int byte = 0; byte < 256; ++byte) pieces.push_back(fmt::format("<0x{:02X}>", byte));
  for (const char* piece : {"\u2581", "a",  "b",      "ab", "\u2581a",      "\u2581ab", "\u2581\u2581",
                            "!",      "!!", "\u4f60", "1",  "\u2581\u4f60", "the",      "\u2581the",
                            "t",      "h",  "e",      "th", "\u2581t",      "\u2581th"}) {
    pieces.push_back(piece);
  }
  return pieces;
}

// Pairs as SentencePiece has them: spaces are marks, one is put in front, what has no piece is written in bytes.
inline nlohmann::json fallback_json() {
  nlohmann::json json = empty_json(), vocabulary;
  const std::vector<std::string> pieces = marked_pieces();
  for (size_t id = 0; id < pieces.size(); ++id) vocabulary[pieces[id]] = id;
  json["added_tokens"] = {added_token(0, "<unk>"), added_token(1, "<s>")};
  for (auto& token : json["added_tokens"]) token["special"] = true;
  const auto replaced = [](const char* from, const char* to) -> nlohmann::json {
    return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
  };
  json["normalizer"] = {{"type", "Sequence"},
                        {"normalizers", {{{"type", "Prepend"}, {"prepend", "\u2581"}}, replaced(" ", "\u2581")}}};
  json["decoder"] = {{"type", "Sequence"},
                     {"decoders",
                      {replaced("\u2581", " "),
                       {{"type", "ByteFallback"}},
                       {{"type", "Fuse"}},
                       {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
  json["model"] = {{"type", "BPE"},         {"unk_token", "<unk>"}, {"fuse_unk", true},
                   {"byte_fallback", true}, {"vocab", vocabulary},  {"merges", nlohmann::json::array()}};
  for (const char* merge : {"a b", "\u2581 a", "\u2581 ab", "\u2581 \u2581", "! !", "\u2581 \u4f60", "t h", "th e",
                            "\u2581 t", "\u2581t h", "\u2581th e"}) {
    json["model"]["merges"].push_back(merge);
  }
  return json;
}

// Unigram over the same pieces. scheme: which words get a mark in front that the text has not.
inline nlohmann::json unigram_bytes_json(const char* scheme) {
  nlohmann::json json = empty_json(), metaspace = {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"split", true}};
  metaspace["prepend_scheme"] = scheme;
  auto vocabulary = nlohmann::json::array();
  double score = -1;
  for (const std::string& piece : marked_pieces()) vocabulary.push_back({piece, score -= 0.01});
  json["pre_tokenizer"] = metaspace;
  json["decoder"] = {{"type", "Sequence"}, {"decoders", {{{"type", "ByteFallback"}}, metaspace}}};
  json["model"] = {{"type", "Unigram"}, {"unk_id", 0}, {"byte_fallback", true}, {"vocab", vocabulary}};
  return json;
}

}  // namespace clearhead::text::tests
