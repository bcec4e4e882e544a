// SPDX-License-Identifier: Apache-2.0
// GGUF tokenizers of the models bert and t5 against llama.cpp, by the golden of golden/make_gguf_golden.py.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "clearhead/base/memory.h"
#include "clearhead/text/gguf_tokenizer.h"
#include "tests/support/model_folder.h"
#include "tests/text/id_hash.h"
#include "tests/text/small_gguf.h"

namespace clearhead::text {
namespace {

using tests::GgufBytes;
using tests::GgufPiece;
using tests::kControl;
using tests::kLine;
using tests::kNormal;
using tests::le;

nlohmann::json parsed(const std::string& name) {
  return nlohmann::json::parse(base::read_file(CLEARHEAD_TEST_DATA "/" + name, 1 << 20));
}

const nlohmann::json& golden() {
  static const auto json = parsed("gguf_golden.json");
  return json;
}

std::vector<std::string> texts() {
  auto result = parsed("cuts_golden.json").at("texts").get<std::vector<std::string>>();
  for (const auto& text : golden().at("texts")) result.push_back(text.get<std::string>());
  return result;
}

// Inside a word this mark may begin one for llama.cpp.
bool has_mark_in_word(const std::string& text) { return text.find("a" + kLine) != std::string::npos; }

Tokenizer tokenizer_of(GgufBytes file, const nlohmann::json& keys) {
  for (const auto& [key, value] : keys.items()) file.value("tokenizer.ggml." + key, 7, le(value.get<bool>()));
  return gguf_tokenizer(tests::read_gguf(file.text()).metadata());
}

void expect_hashes(const Tokenizer& tokenizer, const nlohmann::json& own, bool marks) {
  const auto& hashes = own.at("hashes").get_ref<const std::string&>();
  size_t place = 0;
  for (const std::string& text : texts()) {
    if (marks || !has_mark_in_word(text)) {
      const std::vector<int64_t> ids = tokenizer.encode_ids(text);
      EXPECT_EQ(tests::hash_of(ids), hashes.substr(place, 8)) << own.at("keys") << " of " << text;
      std::vector<int64_t> same;
      for (const Token& token : tokenizer.encode(text).tokens) {
        same.push_back(token.id);
        EXPECT_LE(token.begin, token.end);
        EXPECT_LE(token.end, text.size());
      }
      EXPECT_EQ(same, ids) << text;
    }
    place += 8;
  }
  EXPECT_EQ(place, hashes.size());
}

// As a GGUF has the vocabulary of minilm: a mark before what begins a word, none before what goes on with one.
GgufBytes minilm_in_gguf() {
  const auto file = tests::minilm_folder() / "tokenizer.json";
  const auto json = nlohmann::json::parse(base::read_file(file, size_t{1} << 24));
  const auto& vocabulary = json.at("model").at("vocab");
  std::vector<GgufPiece> pieces(vocabulary.size());
  for (const auto& [piece, id] : vocabulary.items()) {
    const bool special = piece.starts_with('[') && piece.ends_with(']');
    const std::string stored = special ? piece : piece.starts_with("##") ? piece.substr(2) : kLine + piece;
    const bool control = special && piece.find("unused") == std::string::npos;
    pieces.at(id.get<size_t>()) = {stored, control ? kControl : kNormal};
  }
  return tests::metadata("bert", pieces);
}

TEST(GgufGolden, IdsOfBertAreThoseOfLlamaCpp) {
  const GgufBytes file = minilm_in_gguf();
  ASSERT_EQ(golden().at("bert").size(), 4U);
  for (const auto& own : golden().at("bert")) expect_hashes(tokenizer_of(file, own.at("keys")), own, false);
}

GgufBytes unigram(const nlohmann::json& pieces, bool mapped) {
  std::vector<GgufPiece> list;
  std::string scores, map;
  for (size_t i = 0; i < pieces.at("tokens").size(); ++i) {
    list.push_back({pieces.at("tokens")[i].get<std::string>(), pieces.at("types")[i].get<int>()});
    scores += le(pieces.at("scores")[i].get<float>());
  }
  GgufBytes file = tests::metadata("t5", list);
  file.array("tokenizer.ggml.scores", 6, list.size(), scores);
  const auto hex = pieces.at("map").get<std::string>();
  for (size_t i = 0; i < hex.size(); i += 2) map += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  if (mapped) file.array("tokenizer.ggml.precompiled_charsmap", 0, map.size(), map);
  return file;
}

TEST(GgufGolden, IdsOfT5AreThoseOfLlamaCpp) {
  ASSERT_EQ(golden().at("t5").size(), 8U);
  for (const auto& own : golden().at("t5")) {
    const GgufBytes file = unigram(golden().at("pieces"), own.at("map").get<bool>());
    expect_hashes(tokenizer_of(file, own.at("keys")), own, true);
  }
}

TEST(GgufGolden, T5IsDecodedToItsText) {
  const Tokenizer tokenizer = tokenizer_of(unigram(golden().at("pieces"), true), {{"add_space_prefix", true}});
  const std::string text = "a word. Word <extra_id_0> don't";
  EXPECT_EQ(tokenizer.decode(tokenizer.encode_ids(text), true), "a word. Word <extra_id_0>  don't");
  EXPECT_EQ(tokenizer.id_of("</s>"), 1);
  EXPECT_EQ(tokenizer.piece_of(0), "<pad>");
}

TEST(GgufGolden, MapsThatAreNoneAreRefused) {
  for (const std::string& map :
       {std::string("\x04\0\0", 3), std::string("\xff\xff\xff\x7f....", 8), std::string("\x05\0\0\0\0\0\0\0\0", 9)}) {
    GgufBytes file = unigram(golden().at("pieces"), false);
    file.array("tokenizer.ggml.precompiled_charsmap", 0, map.size(), map);
    const std::string found = tests::complaint(file);
    EXPECT_TRUE(found.starts_with("[\"m\" tokenizer.ggml.precompiled_charsmap] expected ")) << found;
  }
  GgufBytes wide = unigram(golden().at("pieces"), false);
  wide.array("tokenizer.ggml.precompiled_charsmap", 5, 1, le(int32_t{256}));
  EXPECT_EQ(tests::complaint(wide), "[\"m\"] expected tokenizer.ggml.precompiled_charsmap of bytes; found 256");
  GgufBytes nothing = tests::metadata("t5", {{"a"}, {"b"}, {"c"}});
  EXPECT_EQ(tests::complaint(nothing), "[\"m\"] expected tokenizer.ggml.scores of the tokens; found none");
}

}  // namespace
}  // namespace clearhead::text
