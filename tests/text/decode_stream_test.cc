// SPDX-License-Identifier: Apache-2.0
// Decoding token by token against the definition of each decoder on all pieces at once.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "clearhead/base/utf8.h"
#include "tests/text/small_tokenizer.h"

namespace clearhead::text::tests {
namespace {

using nlohmann::json;
using Pieces = std::vector<std::string>;

constexpr const char* kMark = "\u2581";

// Pieces that decoders treat in their own ways, and parts of characters.
const Pieces& vocabulary() {
  static const Pieces pieces = {"a",      "b",       " ",      "  ",     "##b",    "b</w>",  "</w>",
                                "\u2581", "\u2581a", "<0xE4>", "<0xBD>", "<0xA0>", "<0x20>", "<0xFF>",
                                "<0x4>",  "\u4f60",  "\u00e4", "\u00bd", "\u0142", "\u0120", "\u0120a",
                                "n't",    ".",       "\u0155", "\u00f0", "\u0141", "\ufffd"};
  return pieces;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string joined(const Pieces& pieces) {
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  return all;
}

// <0x00> to <0xFF> side by side are the text of their bytes, or U+FFFD for each.
Pieces with_bytes(const Pieces& pieces) {
  Pieces result;
  std::string bytes;
  const auto add = [&] {
    const bool bad = base::first_invalid_utf8(bytes).has_value();
    for (size_t i = 0; bad && i < bytes.size(); ++i) result.push_back("\ufffd");
    if (!bad && !bytes.empty()) result.push_back(bytes);
    bytes.clear();
  };
  for (const std::string& piece : pieces) {
    if (piece.size() == 6 && piece.starts_with("<0x")) {
      bytes += static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16));
    } else {
      add();
      result.push_back(piece);
    }
  }
  add();
  return result;
}

std::string stripped(std::string text, size_t start, size_t stop) {
  for (size_t i = 0; i < start && text.starts_with(' '); ++i) text.erase(0, 1);
  for (size_t i = 0; i < stop && text.ends_with(' '); ++i) text.pop_back();
  return text;
}

struct Case {
  json decoder;
  std::string (*all_at_once)(const Pieces& pieces);
};

const std::vector<Case>& cases() {
  static const json replace = {{"type", "Replace"}, {"pattern", {{"String", kMark}}}, {"content", " "}};
  static const std::vector<Case> made = {
      {nullptr,
       [](const Pieces& pieces) {
         std::string text;
         for (size_t i = 0; i < pieces.size(); ++i) text += (i > 0 ? " " : "") + pieces[i];
         return text;
       }},
      {{{"type", "Metaspace"}, {"replacement", kMark}, {"prepend_scheme", "always"}, {"split", true}},
       [](const Pieces& pieces) {
         std::string text;
         for (size_t i = 0; i < pieces.size(); ++i) text += replaced(pieces[i], kMark, i > 0 ? " " : "");
         return text;
       }},
      {{{"type", "BPEDecoder"}, {"suffix", "</w>"}},
       [](const Pieces& pieces) {
         std::string text;
         for (size_t i = 0; i < pieces.size(); ++i)
           text += replaced(pieces[i], "</w>", i + 1 < pieces.size() ? " " : "");
         return text;
       }},
      {{{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", false}},
       [](const Pieces& pieces) {
         std::string text;
         for (size_t i = 0; i < pieces.size(); ++i) {
           const bool goes_on = i > 0 && pieces[i].starts_with("##");
           text += (i > 0 && !goes_on ? " " : "") + (goes_on ? pieces[i].substr(2) : pieces[i]);
         }
         return text;
       }},
      {{{"type", "ByteFallback"}}, [](const Pieces& pieces) { return joined(with_bytes(pieces)); }},
      {{{"type", "Sequence"},
        {"decoders",
         {replace,
          {{"type", "ByteFallback"}},
          {{"type", "Fuse"}},
          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}},
       [](const Pieces& pieces) {
         Pieces spaced;
         for (const std::string& piece : pieces) spaced.push_back(replaced(piece, kMark, " "));
         return stripped(joined(with_bytes(spaced)), 1, 0);
       }},
      {{{"type", "Sequence"},
        {"decoders", {{{"type", "Fuse"}}, {{"type", "Strip"}, {"content", " "}, {"start", 2}, {"stop", 3}}}}},
       [](const Pieces& pieces) { return stripped(joined(pieces), 2, 3); }},
      {{{"type", "Sequence"}, {"decoders", {{{"type", "Fuse"}}, replace}}},
       [](const Pieces& pieces) { return replaced(joined(pieces), kMark, " "); }}};
  return made;
}

Tokenizer tokenizer_with(const json& decoder) {
  json pieces = json::object();
  for (size_t i = 0; i < vocabulary().size(); ++i) pieces[vocabulary()[i]] = i;
  return from({{"version", "1.0"},
               {"truncation", nullptr},
               {"padding", nullptr},
               {"added_tokens", json::array()},
               {"normalizer", nullptr},
               {"pre_tokenizer", nullptr},
               {"post_processor", nullptr},
               {"decoder", decoder},
               {"model", {{"type", "BPE"}, {"vocab", pieces}, {"merges", json::array()}}}});
}

std::vector<int64_t> any_ids() {
  const auto id = rc::gen::inRange<int64_t>(0, static_cast<int64_t>(vocabulary().size()));
  return *rc::gen::container<std::vector<int64_t>>(id);
}

// The stream's text, each part of which has to be valid.
std::string streamed(const Tokenizer& tokenizer, const std::vector<int64_t>& ids) {
  DecodeStream stream = tokenizer.decode_stream(false);
  std::string text;
  for (const int64_t id : ids) {
    const std::string part = stream.add(id);
    RC_ASSERT(!base::first_invalid_utf8(part));
    text += part;
  }
  const std::string rest = stream.finish();
  RC_ASSERT(!base::first_invalid_utf8(rest));
  return text + rest;
}

TEST(DecodeStream, GivesWhatAllAtOnceGives) {
  for (const Case& one : cases()) {
    const Tokenizer tokenizer = tokenizer_with(one.decoder);
    EXPECT_TRUE(rc::check(one.decoder.dump(), [&] {
      const std::vector<int64_t> ids = any_ids();
      Pieces pieces;
      for (const int64_t id : ids) pieces.push_back(vocabulary()[static_cast<size_t>(id)]);
      const std::string expected = one.all_at_once(pieces);
      RC_ASSERT(streamed(tokenizer, ids) == expected);
      RC_ASSERT(tokenizer.decode(ids, false) == expected);
    }));
  }
}

TEST(DecodeStream, GivesByteLevelTextByWholeCharacters) {
  const Tokenizer tokenizer = tokenizer_with({{"type", "ByteLevel"}});
  EXPECT_TRUE(rc::check([&] {
    const std::vector<int64_t> ids = any_ids();
    RC_ASSERT(streamed(tokenizer, ids) == tokenizer.decode(ids, false));
  }));
  const auto id = [&](const char* piece) { return *tokenizer.id_of(piece); };
  DecodeStream stream = tokenizer.decode_stream(false);
  EXPECT_EQ(stream.add(id("\u00e4")), "");        // byte E4
  EXPECT_EQ(stream.add(id("\u00bd")), "");        // BD
  EXPECT_EQ(stream.add(id("\u0142")), "\u4f60");  // A0
  EXPECT_EQ(stream.add(id("\u00e4")), "");
  EXPECT_EQ(stream.add(id("a")), "\ufffda");
  EXPECT_EQ(stream.add(id("\u00f0")), "");
  EXPECT_EQ(stream.finish(), "\ufffd");
  EXPECT_EQ(base::valid_utf8("\xe4"
                             "a\xf0"),
            "\ufffda\ufffd");
}

TEST(DecodeStream, HandsOnAsSoonAsItIsCertain) {
  const Tokenizer tokenizer = tokenizer_with(cases()[5].decoder);
  const auto id = [&](const char* piece) { return *tokenizer.id_of(piece); };
  DecodeStream stream = tokenizer.decode_stream(false);
  EXPECT_EQ(stream.add(id("\u2581a")), "a");
  EXPECT_EQ(stream.add(id("\u2581a")), " a");
  EXPECT_EQ(stream.add(id("<0xE4>")), "");
  EXPECT_EQ(stream.add(id("<0xBD>")), "");
  EXPECT_EQ(stream.add(id("<0xA0>")), "");
  EXPECT_EQ(stream.add(id("b")), "\u4f60b");
  EXPECT_EQ(stream.finish(), "");
}

}  // namespace
}  // namespace clearhead::text::tests
