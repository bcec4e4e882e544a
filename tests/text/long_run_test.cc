// SPDX-License-Identifier: Apache-2.0
// Texts of a million equal characters, which other tokenizers were too slow for or crashed on (docs/faults.md, 70).
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "clearhead/base/memory.h"
#include "clearhead/format/gguf.h"
#include "clearhead/text/gguf_tokenizer.h"
#include "tests/support/model_folder.h"
#include "tests/support/thread_clock.h"
#include "tests/text/law_tokenizers.h"
#include "tests/text/small_gguf.h"

namespace clearhead::text::tests {
namespace {

using clearhead::tests::kSlower;
using clearhead::tests::ThreadClock;

// A tenth of it where a sanitizer looks on, for the sake of those who wait.
constexpr size_t kMillion = kSlower > 1 ? 100'000 : 1'000'000;

// `part` over and over, of so many bytes or a little more.
std::string run_of(std::string_view part, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += part;
  return text;
}

// Runs that go wrong in their own ways, each of so many characters.
std::map<std::string, std::string> runs(size_t characters) {
  const auto many = [&](std::string_view part, size_t of = 1) {  // of: characters in part
    return run_of(part, characters / of * part.size());
  };
  return {{"letters", many("a")},
          {"spaces", many(" ")},
          {"marks", many("!")},
          {"Han", many("\u4f60")},
          {"digits", many("1")},
          {"line ends", many("\n")},
          {"emoji with joiners", many("\U0001f468\u200d", 2)},
          {"pairs that merge deep", many("ab", 2)},
          {"spaces and letters", many(" a", 2)},
          {"accents", "e" + many("\u0301\u0316", 2)},
          {"quotes", many("'")},
          {"broken bytes", many("\xff")}};
}

// Byte-level pairs in which ab, abab, abababab and so on up to a thousand bytes are pieces.
nlohmann::json deep_json(bool use_regex) {
  nlohmann::json json = byte_level_json(byte_level_step(use_regex), false);
  auto& model = json["model"];
  std::string run = "ab";
  for (int i = 0; i < 9; ++i, run += run) {
    model["merges"].push_back(nlohmann::json::array({run, run}));
    model["vocab"][run + run] = model["vocab"].size();
  }
  for (auto& token : json["added_tokens"]) token["id"] = token["id"].get<size_t>() + 9;
  return json;
}

// Byte-level pairs in words as GPT-4o has them, which PCRE2 finds.
nlohmann::json own_words_json() {
  constexpr std::string_view kWords =
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
      R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const nlohmann::json split = {
      {"type", "Split"}, {"pattern", {{"Regex", kWords}}}, {"behavior", "Isolated"}, {"invert", false}};
  const nlohmann::json steps = {{"type", "Sequence"}, {"pretokenizers", {split, byte_level_step(false)}}};
  return byte_level_json(steps, false);
}

Tokenizer of_gguf(const clearhead::tests::GgufBytes& file) {
  return gguf_tokenizer(clearhead::tests::read_gguf(file.text()).metadata());
}

// A few pieces with marks in front of words, as GGUF has WordPiece.
Tokenizer gguf_bert() {
  using clearhead::tests::kControl, clearhead::tests::kLine;
  return of_gguf(clearhead::tests::metadata("bert", {{"[PAD]", kControl},
                                                     {"[UNK]", kControl},
                                                     {"[CLS]", kControl},
                                                     {"[SEP]", kControl},
                                                     {kLine + "a"},
                                                     {kLine + "ab"},
                                                     {"a"},
                                                     {"b"},
                                                     {"aba"},
                                                     {"1"},
                                                     {kLine + "1"},
                                                     {kLine + "!"},
                                                     {kLine + "\u4f60"}}));
}

// The pieces and the normalization map of the golden of GGUF's Unigram.
Tokenizer gguf_t5() {
  const auto golden = nlohmann::json::parse(base::read_file(CLEARHEAD_TEST_DATA "/gguf_golden.json", 1 << 20));
  const auto& pieces = golden.at("pieces");
  std::vector<clearhead::tests::GgufPiece> list;
  std::string scores, map;
  for (size_t i = 0; i < pieces.at("tokens").size(); ++i) {
    list.push_back({pieces.at("tokens")[i].get<std::string>(), pieces.at("types")[i].get<int>()});
    scores += clearhead::tests::le(pieces.at("scores")[i].get<float>());
  }
  auto file = clearhead::tests::metadata("t5", list);
  file.array("tokenizer.ggml.scores", 6, list.size(), scores);
  const auto hex = pieces.at("map").get<std::string>();
  for (size_t i = 0; i < hex.size(); i += 2) map += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  file.array("tokenizer.ggml.precompiled_charsmap", 0, map.size(), map);
  return of_gguf(file);
}

const std::map<std::string, Tokenizer>& tokenizers() {
  static const std::map<std::string, Tokenizer> all = [] {
    std::map<std::string, Tokenizer> made;
    const auto file = [](const std::filesystem::path& path) { return Tokenizer::from_file(path); };
    const std::filesystem::path data = CLEARHEAD_TEST_DATA;
    made.emplace("WordPiece of minilm", file(clearhead::tests::minilm_folder() / "tokenizer.json"));
    made.emplace("Unigram of e5", file(clearhead::tests::e5_folder() / "tokenizer.json"));
    const auto gguf = format::GgufFile::open(clearhead::tests::smollm2_file());
    made.emplace("byte pairs of smollm2", gguf_tokenizer(gguf.metadata()));
    made.emplace("byte pairs", file(data / "byte_bpe.json"));
    made.emplace("pairs over bytes", file(data / "fallback_bpe.json"));
    made.emplace("deep pairs", from(deep_json(true)));
    made.emplace("deep pairs in one word", from(deep_json(false)));
    made.emplace("pairs in words by PCRE2", from(own_words_json()));
    made.emplace("WordPiece of a GGUF", gguf_bert());
    made.emplace("Unigram of a GGUF", gguf_t5());
    made.emplace("pairs as SentencePiece has them", from(fallback_json()));
    made.emplace("Unigram over bytes", from(unigram_bytes_json("always")));
    return made;
  }();
  return all;
}

double seconds_of(const std::function<void()>& action) {
  const ThreadClock clock;
  action();
  return clock.seconds();
}

// short_text: a sixteenth of text. Sixteen times the length takes sixteen times as long, and more where pieces are put
// in order and where memory is new to the process: a step that is quadratic takes 256 times as long.
void check_time(const Tokenizer& tokenizer, const std::string& text, const std::string& short_text) {
  constexpr double kMost = 100, kLeast = 4e-3;  // seconds of a short run, so that page faults do not tell
  double brief = 1e9;
  for (int i = 0; i < 3; ++i) brief = std::min(brief, seconds_of([&] { tokenizer.encode(short_text); }));
  Encoding encoding;
  const double seconds = seconds_of([&] { encoding = tokenizer.encode(text, false); });
  EXPECT_LT(seconds, kSlower);
  EXPECT_LT(seconds, kMost * std::max(brief, kLeast));
  std::vector<int64_t> ids;
  EXPECT_LT(seconds_of([&] { ids = tokenizer.encode_ids(text, false); }), kSlower);
  EXPECT_EQ(encoding.tokens.size(), ids.size());
  EXPECT_LT(seconds_of([&] { tokenizer.decode(ids, false); }), kSlower);
}

TEST(LongRuns, TakeNoSecondAndTimeByTheirLength) {
  const auto texts = runs(kMillion), shorter = runs(kMillion / 16);
  for (const auto& [name, tokenizer] : tokenizers()) {
    for (const auto& [kind, text] : texts) {
      SCOPED_TRACE(name + ", " + kind);
      check_time(tokenizer, text, shorter.at(kind));
    }
  }
}

TEST(LongRuns, OfPairsMergeAllTheWay) {
  const Tokenizer tokenizer = from(deep_json(false));
  const Encoding encoding = tokenizer.encode(run_of("ab", size_t{1} << 20));
  EXPECT_EQ(encoding.tokens.size(), size_t{1} << 10);
  for (const Token& token : encoding.tokens) ASSERT_EQ(token.end - token.begin, 1024u);
}

}  // namespace
}  // namespace clearhead::text::tests
