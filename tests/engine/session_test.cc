// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/session.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <thread>

#include "clearhead/base/interrupt.h"
#include "clearhead/engine/memory_estimate.h"
#include "clearhead/engine/verify.h"
#include "clearhead/format/safetensors.h"
#include "clearhead/tensor/compare.h"
#include "tests/model/tensor_bag.h"
#include "tests/model/tiny_bert.h"
#include "tests/support/error_text.h"
#include "tests/support/model_folder.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::engine {
namespace {

using capture::Stage;
using tests::error_text;

const Session& minilm() {
  static const Session session = Session::open(tests::minilm_folder().string());
  return session;
}

const Session& e5() {
  static const Session session = Session::open(tests::e5_folder().string());
  return session;
}

// A tokenizer.json of words; ids count from 0 in the given order, [UNK] is 0, [CLS] 1 and [SEP] 2.
std::string word_tokenizer() {
  constexpr const char* kWords[] = {"[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "on", "mat", "##s"};
  std::string vocabulary;
  for (size_t id = 0; id < std::size(kWords); ++id) {
    vocabulary += fmt::format("{}\"{}\": {}", id == 0 ? "" : ", ", kWords[id], id);
  }
  const auto added = [](const char* token, int number) {
    return fmt::format(R"({{"id": {}, "content": "{}", "single_word": false, "lstrip": false, "rstrip": false, )"
                       R"("normalized": false, "special": true}})",
                       number, token);
  };
  return fmt::format(
      R"({{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [{}, {}, {}],
      "normalizer": {{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                      "strip_accents": null, "lowercase": true}},
      "pre_tokenizer": {{"type": "BertPreTokenizer"}},
      "post_processor": {{"type": "TemplateProcessing",
        "single": [{{"SpecialToken": {{"id": "[CLS]", "type_id": 0}}}}, {{"Sequence": {{"id": "A", "type_id": 0}}}},
                   {{"SpecialToken": {{"id": "[SEP]", "type_id": 0}}}}],
        "pair": [{{"Sequence": {{"id": "A", "type_id": 0}}}}, {{"Sequence": {{"id": "B", "type_id": 1}}}}],
        "special_tokens": {{"[CLS]": {{"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}},
                            "[SEP]": {{"id": "[SEP]", "ids": [2], "tokens": ["[SEP]"]}}}}}},
      "decoder": {{"type": "WordPiece", "prefix": "##", "cleanup": true}},
      "model": {{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                 "max_input_chars_per_word": 100, "vocab": {{{}}}}}}})",
      added("[UNK]", 0), added("[CLS]", 1), added("[SEP]", 2), vocabulary);
}

// A folder with a small BERT of 11 rows and 9 positions and its tokenizer.
class SmallModel {
 public:
  explicit SmallModel(const std::map<std::string, std::string>& settings = {}) {
    model::tiny::fill_bert(bag_);
    bag_.checkpoint(model::tiny::bert_config(settings));
    tests::write_bytes(bag_.folder() / "tokenizer.json", word_tokenizer());
  }

  model::TensorBag& bag() { return bag_; }
  const std::filesystem::path& folder() const { return bag_.folder(); }
  Session open() const { return Session::open(folder().string()); }

 private:
  model::TensorBag bag_;
};

std::vector<int64_t> ids_of(const std::vector<capture::TraceToken>& tokens) {
  std::vector<int64_t> ids;
  for (const capture::TraceToken& token : tokens) ids.push_back(token.id);
  return ids;
}

TEST(Session, AGgufBringsItsOwnTokenizer) {
  const Session session = Session::open(tests::smollm2_file().string());
  EXPECT_EQ(ids_of(session.tokenize("The cat sat on the").tokens), (std::vector<int64_t>{504, 2644, 2643, 335, 260}));
}

TEST(Session, ReadsTheGoldenTextsAsTheirPeerDid) {
  const auto data = std::filesystem::path(CLEARHEAD_TEST_DATA).parent_path().parent_path() / "model" / "data";
  size_t texts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("minilm_") && !name.starts_with("e5_")) continue;
    const format::SafetensorsFile file = format::SafetensorsFile::open(entry.path());
    if (!file.metadata().contains("text")) continue;
    const tensor::Tensor ids = tensor::clone(file.view("ids"));
    const auto expected = ids.as<int64_t>();
    const Session& session = name.starts_with("e5_") ? e5() : minilm();
    EXPECT_EQ(ids_of(session.tokenize(file.metadata().at("text")).tokens),
              std::vector<int64_t>(expected.begin(), expected.end()))
        << entry.path();
    ++texts;
  }
  EXPECT_EQ(texts, 14U);
}

TEST(Session, FromTextToTraceTheVerbLooksAtWhoActs) {
  capture::Selection selection;
  selection.stages = {Stage::weights, Stage::row_sum};
  selection.layers = {{5}};
  selection.heads = {{3, 11}};
  const capture::Trace trace = minilm().run("The cat sat on the mat", selection);
  const capture::TraceInfo& info = trace.info();
  EXPECT_EQ(info.model, tests::minilm_folder().string());
  EXPECT_EQ(info.text, "The cat sat on the mat");
  EXPECT_EQ(info.num_layers, 6U);
  EXPECT_EQ(info.num_heads, 12U);
  EXPECT_EQ(info.num_kv_heads, 12U);
  EXPECT_EQ(info.layers, std::vector<size_t>{5});
  EXPECT_EQ(info.heads, (std::vector<size_t>{3, 11}));
  EXPECT_EQ(info.attention, minilm().config().attention.json());
  EXPECT_FALSE(info.version.empty());
  ASSERT_EQ(info.tokens.size(), 8U);
  EXPECT_EQ(info.tokens[3].text, "sat");
  EXPECT_EQ(info.tokens[3].begin, 8U);
  EXPECT_EQ(info.tokens[3].end, 11U);
  EXPECT_TRUE(info.tokens[0].special && info.tokens[7].special);
  trace.check("test");
  const tensor::TensorView weights = trace.tensor(Stage::weights, 5);
  EXPECT_EQ(weights.shape(), (tensor::Shape{1, 2, 8, 8}));
  EXPECT_NEAR(weights.as<float>()[3 * 8 + 6], 0.43, 0.005);
  EXPECT_NEAR(weights.as<float>()[64 + 3 * 8 + 2], 0.89, 0.005);
  EXPECT_FALSE(trace.has(Stage::weights, 4));
}

TEST(Session, RecordingAndProgressChangeNoBit) {
  const std::string text = "An attention head reads every other word.";
  capture::Selection selection;
  for (const capture::StageInfo& row : capture::stages()) selection.stages.push_back(row.stage);
  std::vector<size_t> done;
  RunOptions options;
  options.progress = [&](size_t layers_done, size_t num_layers) {
    EXPECT_EQ(num_layers, 6U);
    done.push_back(layers_done);
  };
  const capture::Trace trace = minilm().run(text, selection, options);
  EXPECT_EQ(done, (std::vector<size_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(tensor::same_bits(trace.tensor(Stage::layer_output, 5), minilm().encode(text)));
  EXPECT_TRUE(tensor::same_bits(minilm().encode(text, options), minilm().encode(text)));
  EXPECT_EQ(done.size(), 12U);

  selection.stages = {Stage::weights};
  EXPECT_FALSE(minilm().run(text, selection, options).has(Stage::layer_output, 5));
}

TEST(Session, ManyThreadsMayUseIt) {
  const std::string texts[] = {"The cat sat on the mat", "A quiet river crosses the old library"};
  const tensor::Tensor alone[] = {minilm().encode(texts[0]), minilm().encode(texts[1])};
  std::vector<tensor::Tensor> together(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < together.size(); ++i) {
    threads.emplace_back([&, i] { together[i] = minilm().encode(texts[i % 2]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < together.size(); ++i) EXPECT_TRUE(tensor::same_bits(together[i], alone[i % 2]));
}

TEST(Session, TextsWithoutATokenAreRefused) {
  for (const char* text : {" ", "\t\n ", "\x01\x02"}) {
    EXPECT_EQ(error_text([&] { minilm().tokenize(text); }),
              "usage: [text] expected a text with at least one token; found none");
  }
  const std::string empty = "usage: [text] expected a text with at least one token; found an empty text";
  EXPECT_EQ(error_text([] { minilm().tokenize(""); }), empty);
  EXPECT_EQ(error_text([] { minilm().encode(""); }), empty);
  EXPECT_EQ(error_text([] { minilm().run("", {}); }), empty);
  EXPECT_EQ(error_text([] { Session::toy({}).run("", {}); }), empty);
}

TEST(Session, TooManyTokensAreRefusedWithBothNumbersOrCut) {
  const SmallModel small;
  const Session session = small.open();
  const std::string fits = "the cat sat on the mats", long_text = "the cat sat on the mat the cat";
  EXPECT_EQ(session.tokenize(fits).tokens.size(), 9U);
  EXPECT_EQ(session.tokenize(fits, true).cut, 0U);
  const std::string complaint = fmt::format(
      "usage: [text] expected at most 9 tokens, the positions of \"{}\"; found 10 tokens; shorten the "
      "text, or let it be truncated",
      small.folder().string());
  EXPECT_EQ(error_text([&] { session.tokenize(long_text); }), complaint);
  EXPECT_EQ(error_text([&] { session.encode(long_text); }), complaint);

  const TokenizedText cut = session.tokenize(long_text, true);
  EXPECT_EQ(cut.cut, 1U);
  EXPECT_EQ(ids_of(cut.tokens), (std::vector<int64_t>{1, 3, 4, 5, 6, 3, 7, 3, 2}));
  EXPECT_TRUE(cut.tokens.back().special);
  EXPECT_EQ(cut.type_ids.size(), 9U);
  EXPECT_EQ(cut.text, long_text);
  RunOptions truncating;
  truncating.truncate = true;
  EXPECT_EQ(session.encode(long_text, truncating).shape(), (tensor::Shape{1, 9, 8}));
}

TEST(Session, AMegabyteWithoutASpaceIsRefusedWithBothNumbers) {
  const std::string marks(1 << 20, '!');
  EXPECT_NE(error_text([&] { minilm().run(marks, {}); }).find("found 1048578 tokens"), std::string::npos);
  RunOptions truncating;
  truncating.truncate = true;
  EXPECT_EQ(minilm().encode(marks, truncating).shape(), (tensor::Shape{1, 512, 384}));
}

TEST(Session, InvalidUtf8ReadsAsReplacementCharacters) {
  const SmallModel small;
  const TokenizedText read = small.open().tokenize(
      "the \xff"
      "cat\xe4\xb8 mat\xed\xa0\x80");
  EXPECT_EQ(read.text,
            "the \xef\xbf\xbd"
            "cat\xef\xbf\xbd mat\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  ASSERT_EQ(ids_of(read.tokens), (std::vector<int64_t>{1, 3, 4, 7, 2}));
  EXPECT_EQ(read.text.substr(read.tokens[2].begin, 3), "cat");
  EXPECT_EQ(read.text.substr(read.tokens[3].begin, 3), "mat");
  EXPECT_EQ(Session::toy({}).tokenize("a\xff").text, "a\xef\xbf\xbd");
}

TEST(Session, NulAndControlCharactersAreText) {
  const SmallModel small;
  using namespace std::string_literals;
  const TokenizedText read = small.open().tokenize("the c\0at \x1b[31m"s);
  EXPECT_EQ(read.text.size(), 14U);
  EXPECT_EQ(ids_of(read.tokens), (std::vector<int64_t>{1, 3, 4, 0, 0, 2}));
  EXPECT_EQ(read.unknown_count, 2U);
}

TEST(Session, WordsWithoutAPieceAreCounted) {
  const TokenizedText read = SmallModel().open().tokenize("the zebra sat");
  EXPECT_EQ(read.unknown_count, 1U);
  EXPECT_EQ(read.tokens[2].text, "zebra");
  EXPECT_EQ(read.tokens[2].piece, "[UNK]");
}

TEST(Session, AModelWithFewerRowsThanItsTokenizerHasPiecesIsAnError) {
  SmallModel small(std::map<std::string, std::string>{{"vocab_size", "6"}});
  small.bag().add("embeddings.word_embeddings.weight", {6, 8}, 1);
  small.bag().checkpoint();
  const Session session = small.open();
  EXPECT_EQ(session.encode("the cat sat").shape(), (tensor::Shape{1, 5, 8}));
  EXPECT_NE(error_text([&] {
              session.encode("the cat sat on");
            }).find("expected token ids below 6, the rows of the embedding; found 6 at position 4"),
            std::string::npos);
}

TEST(Session, AFolderWithoutTokenizerConfigOrParametersIsRefused) {
  SmallModel no_tokenizer, no_config, no_parameters;
  std::filesystem::remove(no_tokenizer.folder() / "tokenizer.json");
  EXPECT_NE(error_text([&] { no_tokenizer.open(); }).find("expected tokenizer.json beside the parameters; found none"),
            std::string::npos);
  std::filesystem::remove(no_config.folder() / "config.json");
  EXPECT_NE(error_text([&] { no_config.open(); }).find("config.json"), std::string::npos);
  std::filesystem::remove(no_parameters.folder() / "model.safetensors");
  EXPECT_NE(error_text([&] { no_parameters.open(); }).find("expected model.safetensors"), std::string::npos);
  EXPECT_NE(error_text([] { Session::open("no such model"); }).find("no such model"), std::string::npos);
}

TEST(Session, ATruncatedParameterFileIsRefused) {
  const SmallModel small;
  const auto file = small.folder() / "model.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_NE(error_text([&] { small.open(); }).find("model.safetensors"), std::string::npos);
}

TEST(Session, WarningsNameWhatIsNotUsed) {
  SmallModel small;
  small.bag().add("cls.bias", {3});
  small.bag().checkpoint();
  ASSERT_EQ(small.open().warnings().size(), 1U);
  EXPECT_EQ(small.open().warnings()[0], "1 tensor of the model file is not used: \"cls.bias\"");
}

TEST(Session, ARunOverTheMemoryLimitIsRefusedWithTheEstimate) {
  capture::Selection selection;
  selection.stages = {Stage::weights};
  const size_t estimate = minilm().memory_estimate(8, selection);
  RunOptions options;
  options.memory_limit = estimate;
  EXPECT_EQ(error_text([&] { minilm().run("The cat sat on the mat", selection, options); }), "no error");
  options.memory_limit = estimate - 1;
  EXPECT_EQ(error_text([&] { minilm().run("The cat sat on the mat", selection, options); }),
            fmt::format("usage: [memory] expected a run that keeps at most {} bytes; found {} bytes; record fewer "
                        "stages, layers or heads, or raise the limit",
                        estimate - 1, estimate));
  options.memory_limit = 1000;
  EXPECT_NE(error_text([&] { minilm().encode("a", options); }).find("[memory]"), std::string::npos);
}

TEST(MemoryEstimate, CountsWhatIsRecorded) {
  const auto recorded = [](const capture::Selection& selection, size_t seq_len) {
    capture::Selection passing = selection;
    passing.layers = {std::vector<size_t>{}};
    return minilm().memory_estimate(seq_len, selection) - minilm().memory_estimate(seq_len, passing);
  };
  capture::Selection selection;
  selection.stages = {Stage::weights, Stage::row_sum, Stage::logits, Stage::rotated_key};
  EXPECT_EQ(recorded(selection, 100), 6U * 12 * (100 * 100 + 100) * 4);
  selection.heads = {{1, 2, 3}};
  selection.layers = {{0, 5}};
  EXPECT_EQ(recorded(selection, 100), 2U * 3 * (100 * 100 + 100) * 4);
  selection.stages = {Stage::key, Stage::feed_forward_hidden};
  EXPECT_EQ(recorded(selection, 10), 2U * 10 * (3 * 32 + 1536) * 4);

  const capture::Trace trace = minilm().run("The cat sat on the mat", selection);
  EXPECT_EQ(recorded(selection, 8), trace.bytes());
}

TEST(MemoryEstimate, ParametersAreThoseThatArePacked) {
  const size_t bytes = minilm().transformer().resident_bytes();
  constexpr size_t kBlock = 4 * (384 * 384 + 384) + 2 * 384 * 1536 + 1536 + 384 + 4 * 384;
  EXPECT_EQ(bytes, (6 * kBlock + 2 * 384) * sizeof(float));
  EXPECT_GE(minilm().memory_estimate(1, {}), bytes);
}

TEST(MemoryEstimate, NumbersThatCannotBeCountedAreTheLargest) {
  capture::Selection selection;
  selection.stages = {Stage::weights};
  EXPECT_EQ(minilm().memory_estimate(size_t{1} << 62, selection), kUncountable);
  EXPECT_LT(minilm().memory_estimate(size_t{1} << 24, selection), kUncountable);
}

TEST(MemoryEstimate, TheSystemSaysWhatIsFree) {
  ASSERT_TRUE(free_memory().has_value());
  EXPECT_GT(*free_memory(), size_t{1} << 20);
}

// An interrupt is asked for once and for all: the run is given up in a process of its own.
TEST(SessionDeathTest, AnInterruptEndsTheRunBetweenLayers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto interrupted_run = [] {
    size_t layers = 0;
    RunOptions options;
    options.progress = [&](size_t layers_done, size_t) {
      layers = layers_done;
      if (layers_done == 2) base::request_interrupt();
    };
    try {
      minilm().encode("The cat", options);
    } catch (const base::Interrupted&) {
      std::exit(static_cast<int>(layers));
    }
    std::exit(100);
  };
  EXPECT_EXIT(interrupted_run(), testing::ExitedWithCode(2), "");
}

TEST(Session, RunsATextThatItHasTokenizedAlready) {
  const Session toy = Session::toy({.d_model = 16, .num_heads = 2});
  const capture::Selection selection{{Stage::weights}, std::nullopt, std::nullopt};
  const capture::Trace of_text = toy.run("a b c", selection), of_tokens = toy.run(toy.tokenize("a b c"), selection);
  EXPECT_EQ(of_tokens.info().text, "a b c");
  EXPECT_TRUE(tensor::same_bits(of_tokens.tensor(Stage::weights, 0), of_text.tensor(Stage::weights, 0)));
}

TEST(Session, VerifyProvesTheWordsOfATraceToo) {
  const Session toy = Session::toy({.d_model = 16, .num_heads = 2});
  const capture::Trace trace = toy.run("a b c", {{Stage::token_embedding}, std::nullopt, std::nullopt});
  EXPECT_TRUE(verify(toy, trace).ok);
  capture::TraceInfo other = trace.info();
  other.text = "a b d";
  capture::Trace lie(other);
  lie.add(Stage::token_embedding, 0, tensor::clone(trace.tensor(Stage::token_embedding)));
  for (const auto& check : {error_text([&] { verify(toy, lie); }), error_text([&] { verify_end_to_end(toy, lie); })}) {
    EXPECT_EQ(check, "[verify] expected the tokens that the trace's text has in this model; found others");
  }
}

}  // namespace
}  // namespace clearhead::engine
