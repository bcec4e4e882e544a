// SPDX-License-Identifier: Apache-2.0
// Faults of loading and of positions that other engines had (docs/faults.md, groups D and F), each fault's whole kind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "clearhead/format/checkpoint.h"
#include "clearhead/model/families/family.h"
#include "clearhead/tensor/compare.h"
#include "tests/format/gguf_bytes.h"
#include "tests/model/tensor_bag.h"
#include "tests/support/error_text.h"
#include "tests/support/stage_collector.h"

namespace clearhead::model {
namespace {

using capture::Stage;
using tests::error_text;

const std::vector<int64_t> kIds = {3, 7, 0, 41, 7};

std::filesystem::path data(const std::string& name) {
  return std::filesystem::path(CLEARHEAD_TEST_DATA) / "decoders" / name;
}

// The small decoder of that name, to be changed before it is loaded.
struct Changed {
  explicit Changed(const std::string& name) {
    const auto checkpoint = format::Checkpoint::open(data(name));
    for (const std::string& tensor : checkpoint.names()) bag.put(tensor, tensor::clone(checkpoint.view(tensor)));
    config = checkpoint.config_json();
  }

  Changed& replace(const std::string& from, const std::string& to) {
    const size_t at = config.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    config.replace(at, from.size(), to);
    return *this;
  }

  LoadedModel load() const { return load_model(bag.checkpoint(config)); }
  std::string complaint() const {
    return error_text([&] { load(); });
  }

  TensorBag bag;
  std::string config;
};

tensor::Tensor logits_of(const LoadedModel& model) {
  return model.transformer.logits(model.transformer.run({kIds, {}}).as<float>());
}

TEST(TiedVocabulary, IsTheEmbeddingWhereNoOtherIsStored) {
  Changed plain("llama");
  ASSERT_FALSE(plain.bag.tensors().contains("lm_head.weight"));
  const LoadedModel model = plain.load();
  const tensor::Tensor hidden = model.transformer.run({kIds, {}}), logits = logits_of(model);
  const std::vector<double> embedding = plain.bag.doubles("model.embed_tokens.weight");
  const size_t width = model.transformer.config().d_model, vocab = model.transformer.config().vocab_size;
  for (size_t id = 0; id < vocab; ++id) {
    double sum = 0;
    for (size_t d = 0; d < width; ++d) sum += static_cast<double>(hidden.as<float>()[d]) * embedding[id * width + d];
    EXPECT_NEAR(logits.as<float>()[id], sum, 1e-4) << id;
  }
}

TEST(TiedVocabulary, CountsMoreThanAHeadThatIsStoredBesideIt) {
  const tensor::Tensor truth = logits_of(Changed("llama").load());
  Changed both("llama");
  both.bag.add("lm_head.weight", {48, 24});
  const LoadedModel model = both.load();
  EXPECT_TRUE(model.warnings.empty()) << model.warnings[0];
  EXPECT_TRUE(tensor::same_bits(logits_of(model), truth));
  both.replace("\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
  EXPECT_FALSE(tensor::same_bits(logits_of(both.load()), truth));
}

TEST(TiedVocabulary, IsNotTakenWhereTheConfigSaysNo) {
  Changed body("llama");
  body.replace("\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
  const LoadedModel model = body.load();
  EXPECT_FALSE(model.transformer.has(Stage::logits));
  EXPECT_EQ(error_text([&] { logits_of(model); }),
            "[model parameters] expected a model with a head over the vocabulary; found one without");
}

// Nothing but the bias is left of the values, so every head gives its bias whatever it looks at.
TEST(Biases, OfQueryKeyAndValueCount) {
  Changed qwen("qwen2");
  const std::string name = "model.layers.0.self_attn.";
  qwen.bag.put(name + "v_proj.weight", tensor::Tensor(qwen.bag.tensors().at(name + "v_proj.weight").shape()));
  const std::vector<double> bias = qwen.bag.doubles(name + "v_proj.bias");
  const LoadedModel model = qwen.load();
  tests::StageCollector collector({Stage::head_output});
  model.transformer.run({kIds, {}}, &collector);
  const attention::AttentionConfig& heads = model.transformer.config().attention;
  const size_t dim = heads.value_dim, group = heads.num_heads / heads.num_kv_heads;
  const auto seen = collector.get(Stage::head_output, 0).as<float>();  // [1, seq, heads, value_dim]
  for (size_t i = 0; i < seen.size(); ++i) {
    const size_t head = i / dim % heads.num_heads;
    EXPECT_NEAR(seen[i], bias[head / group * dim + i % dim], 1e-6) << i;
  }
}

TEST(Biases, ThatAreMissingAreNamedAndThoseThatNobodyAskedForAreSaid) {
  for (const char* role : {"q", "k", "v"}) {
    Changed qwen("qwen2");
    const std::string name = fmt::format("model.layers.1.self_attn.{}_proj.bias", role);
    qwen.bag.remove(name);
    EXPECT_NE(qwen.complaint().find("expected a tensor \"" + name + "\""), std::string::npos) << qwen.complaint();
    Changed llama("llama");
    llama.bag.add(name, {24});
    const LoadedModel model = llama.load();
    ASSERT_EQ(model.warnings.size(), 1u);
    EXPECT_EQ(model.warnings[0], "1 tensor of the model file is not used: \"" + name + "\"");
  }
}

TEST(RotaryNames, ThatNobodyKnowsAreRefused) {
  Changed llama("llama_linear");
  llama.replace("\"rope_type\": \"linear\"", "\"rope_type\": \"spiral\"");
  EXPECT_NE(llama.complaint().find("expected rope_type to be one of: default, linear, dynamic, yarn, llama3, longrope, "
                                   "su; found \"spiral\""),
            std::string::npos)
      << llama.complaint();
  Changed neox("gpt_neox");
  neox.replace("\"hidden_act\": \"gelu\"", "\"hidden_act\": \"quick_gelu\"");
  EXPECT_NE(neox.complaint().find("expected hidden_act to be one of: gelu, "), std::string::npos) << neox.complaint();
}

// A llama of one layer that has its embedding only: its settings are read before its tensors.
struct Settings {
  std::map<std::string, uint64_t> counts = {{"context_length", 16},      {"block_count", 1},
                                            {"embedding_length", 8},     {"feed_forward_length", 8},
                                            {"attention.head_count", 2}, {"attention.head_count_kv", 1}};
  std::string architecture = "llama";

  std::string complaint() const {
    tests::GgufBytes file;
    file.word("general.architecture", architecture);
    for (const auto& [key, count] : counts) file.value("llama." + key, 10, tests::le(count));
    file.value("llama.attention.layer_norm_rms_epsilon", 6, tests::le(1e-5f));
    file.tensor("token_embd.weight", {8, 4}, 0, 0).data = std::string(128, '\0');
    const tests::TemporaryFolder folder;
    tests::write_bytes(folder / "m.gguf", file.text());
    return error_text(
        [&] { load_model(std::make_shared<const format::Checkpoint>(format::Checkpoint::open(folder / "m.gguf"))); });
  }
};

TEST(GgufSettings, ThatCannotBeAreRefusedBeforeAnyDivision) {
  const auto complaint = [](const std::string& key, uint64_t count) {
    Settings settings;
    settings.counts[key] = count;
    return settings.complaint();
  };
  const auto expect = [&](const std::string& key, uint64_t count, const std::string& text) {
    const std::string found = complaint(key, count);
    EXPECT_NE(found.find(text), std::string::npos) << key << " of " << count << ": " << found;
  };
  expect("context_length", 16, "expected a tensor \"blk.0.attn_norm.weight\"");  // nothing is wrong with these
  expect("block_count", 0, "expected num_layers from 1 to 512; found 0");
  expect("block_count", 513, "expected num_layers from 1 to 512; found 513");
  expect("attention.head_count", 0, "expected an attention.head_count that divides embedding_length; found 0 heads");
  expect("attention.head_count", 3, "expected an attention.head_count that divides embedding_length; found 3 heads");
  expect("attention.head_count_kv", 0, "expected num_kv_heads that divide num_heads; found 0 and 2");
  expect("attention.head_count_kv", 4, "expected num_kv_heads that divide num_heads; found 4 and 2");
  expect("attention.key_length", 0, "expected num_heads, head_dim and value_dim of 1 or more");
  expect("rope.dimension_count", 3, "expected an even number of dimensions from 2 to 4; found 3");
  expect("rope.dimension_count", 6, "expected an even number of dimensions from 2 to 4; found 6");
  expect("feed_forward_length", 0, "expected a feed_forward_length of 1 or more; found 0");
  expect("embedding_length", 0, "found");
  expect("spiral", 1, "expected keys that this model family knows; found \"llama.spiral\"");
  for (const char* key : {"context_length", "block_count", "embedding_length", "feed_forward_length",
                          "attention.head_count", "attention.head_count_kv", "attention.key_length"}) {
    for (const uint64_t huge : {uint64_t{1} << 32, (uint64_t{1} << 63) - 1, uint64_t{1} << 63, ~uint64_t{0}}) {
      expect(key, huge, std::string("\"llama.") + key + "\"");
    }
  }
  EXPECT_NE(Settings{.architecture = "spiral"}.complaint().find(
                "expected general.architecture to be one of: bert, gpt2, llama, "),
            std::string::npos);
}

// Ids and prompts that cannot be read.
TEST(Prompts, WithoutTokensBeyondTheRowsOrTooLongAreRefused) {
  const Transformer model =
      load_model(std::make_shared<const format::Checkpoint>(format::Checkpoint::open(data("llama.gguf")))).transformer;
  const auto complaint = [&](const std::vector<int64_t>& ids) { return error_text([&] { model.run({ids, {}}); }); };
  EXPECT_EQ(complaint({}), "usage: [model] expected at least one token; found none");
  for (const int64_t id : {int64_t{48}, int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(complaint({0, id}), fmt::format("usage: [model] expected token ids below 48, the rows of the embedding; "
                                              "found {} at position 1; tokenizer and model do not belong together",
                                              id));
  }
  EXPECT_EQ(complaint({0, 0, 47}), "no error");
  EXPECT_EQ(complaint(std::vector<int64_t>(65, 1)),
            "usage: [model] expected at most 64 tokens, the positions of the model; found 65");
}

}  // namespace
}  // namespace clearhead::model
