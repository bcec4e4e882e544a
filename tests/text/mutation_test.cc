// SPDX-License-Identifier: Apache-2.0
// The tokenizer.json of real models and of components one by one, changed a thousand times: each is refused or cuts
// texts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "clearhead/base/error.h"
#include "clearhead/base/memory.h"
#include "clearhead/format/gguf_header.h"
#include "clearhead/text/gguf_tokenizer.h"
#include "clearhead/text/tokenizer.h"
#include "tests/support/model_folder.h"
#include "tests/support/mutations.h"

namespace clearhead::text {
namespace {

constexpr size_t kMutations = 1000, kWholeMutations = 10, kPieces = 300;
const std::string kText = "The cat sat, \u5c0f\u660e\u5728 [MASK] <mask> caf\u00e9 \U0001f600\n";

// The file with the first pieces of its vocabulary only: everything else that a tokenizer.json says, read in no time.
std::string shortened(const std::string& whole) {
  auto document = nlohmann::ordered_json::parse(whole);
  auto& vocabulary = document["model"]["vocab"];
  if (vocabulary.is_array()) {
    vocabulary.erase(vocabulary.begin() + kPieces, vocabulary.end());
  } else {
    auto few = nlohmann::ordered_json::object();
    for (const auto& [piece, id] : vocabulary.items()) {
      if (id.get<size_t>() < kPieces) few[piece] = id;
    }
    vocabulary = few;
  }
  return document.dump();
}

// True if the text is a tokenizer; it then cuts a text and puts it together again.
bool reads(const std::string& json) {
  try {
    const Tokenizer tokenizer = Tokenizer::from_json(json, "m");
    for (const Token& token : tokenizer.encode(kText).tokens) EXPECT_LE(token.end, kText.size());
    EXPECT_LE(tokenizer.decode(tokenizer.encode_ids(kText), false).size(), size_t{1} << 20);
    return true;
  } catch (const base::Error& error) {
    EXPECT_NE(std::string(error.what()), "");
    return false;
  }
}

void expect_refused_or_read(const std::filesystem::path& path) {
  const std::string whole = base::read_file(path, size_t{1} << 30), few = shortened(whole);
  EXPECT_TRUE(reads(few));
  std::mt19937 random(20270);
  size_t read = 0;
  for (size_t i = 0; i < kMutations; ++i) {
    std::string text = few;
    tests::mutate(text, random);
    if (i % 8 == 7) text.resize(random() % text.size());
    read += reads(text);
  }
  EXPECT_GT(read, kMutations / 100);
  EXPECT_LT(read, kMutations - kMutations / 100);
  for (size_t i = 0; i < kWholeMutations; ++i) {
    std::string text = whole;
    tests::mutate(text, random);
    if (i % 2 == 0) text.resize(random() % text.size());
    reads(text);
  }
}

// Precompiled maps and regular expressions, which tokenizers bring as text of their own.
TEST(Mutations, OfComponents) {
  const auto cases = nlohmann::json::parse(base::read_file(CLEARHEAD_TEST_DATA "/components_golden.json", 1 << 20));
  std::vector<std::string> files;
  for (const auto& one : cases) files.push_back(one[0].dump());
  nlohmann::json cut = cases[0][0];
  cut["normalizer"] = {
      {"type", "Replace"}, {"content", "x"}, {"pattern", {{"Regex", R"((?i:'s|t)|[^\s\p{L}&&a]{2,3}?)"}}}};
  cut["pre_tokenizer"] = {{"type", "Split"},
                          {"behavior", "MergedWithNext"},
                          {"invert", false},
                          {"pattern", {{"Regex", R"((?<=\p{Lu})\b|[[:digit:]a-f]*+(?:\s+(?!\S)|$))"}}}};
  for (int i = 0; i < 4; ++i) files.push_back(cut.dump());
  std::mt19937 random(20271);
  size_t read = 0;
  for (size_t i = 0; i < kMutations; ++i) {
    std::string text = files[i % files.size()];
    tests::mutate(text, random);
    read += reads(text);
  }
  EXPECT_GT(read, kMutations / 100);
  EXPECT_LT(read, kMutations - kMutations / 100);
}

// The metadata of a real GGUF: its keys and values stand at the begin, its lists behind them.
TEST(Mutations, OfTheTokenizerOfSmollm2) {
  const base::MappedFile file(tests::smollm2_file());
  const size_t header = format::parse_gguf_header(file.bytes(), "m").data_begin;
  const std::string whole(reinterpret_cast<const char*>(file.bytes().data()), header);
  std::vector<std::byte> all(file.bytes().begin(), file.bytes().end());  // a header without its tensors is refused
  std::mt19937 random(20272);
  size_t parsed = 0, read = 0;
  for (size_t i = 0; i < kMutations && parsed < kWholeMutations; ++i) {
    std::string text = whole;
    tests::mutate(text, random);
    try {
      std::ranges::copy(std::as_bytes(std::span(text)), all.begin());
      const format::GgufHeader changed = format::parse_gguf_header(all, "m");
      ++parsed;
      const Tokenizer tokenizer = gguf_tokenizer(changed.metadata);
      for (const Token& token : tokenizer.encode(kText).tokens) EXPECT_LE(token.end, kText.size());
      ++read;
    } catch (const base::Error& error) {
      EXPECT_NE(std::string(error.what()), "");
    }
  }
  EXPECT_EQ(parsed, kWholeMutations);
  EXPECT_GT(read, 0U);
}

TEST(Mutations, OfTheTokenizerOfMinilm) { expect_refused_or_read(tests::minilm_folder() / "tokenizer.json"); }

TEST(Mutations, OfTheTokenizerOfE5) { expect_refused_or_read(tests::e5_folder() / "tokenizer.json"); }

}  // namespace
}  // namespace clearhead::text
