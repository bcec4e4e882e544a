// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/key_value_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "clearhead/model/families/family.h"
#include "clearhead/tensor/compare.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace clearhead::model {
namespace {

const char* const kModels[] = {"llama", "llama_dynamic", "llama_longrope", "mistral", "qwen2",
                               "qwen3", "gemma2",        "gemma3",         "gpt2",    "gpt_neox"};

LoadedModel load(const std::string& name) {
  const auto path = std::filesystem::path(CLEARHEAD_TEST_DATA) / "decoders" / name;
  return load_model(std::make_shared<const format::Checkpoint>(format::Checkpoint::open(path)));
}

std::vector<int64_t> some_ids(size_t count) {
  std::vector<int64_t> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(static_cast<int64_t>((7 * i + 3) % 48));
  return ids;
}

// The hidden states of ids read in parts of the given lengths, one part after the other.
std::vector<float> in_parts(const Transformer& model, std::span<const int64_t> ids, const std::vector<size_t>& parts,
                            attention::Precision kept = attention::Precision::single,
                            linear::Compute compute = linear::Compute::single) {
  KeyValueCache cache(model.config(), kept);
  std::vector<float> hidden;
  for (const size_t part : parts) {
    const tensor::Tensor one = model.run({.ids = ids.subspan(cache.length(), part),
                                          .type_ids = {},
                                          .declared_len = ids.size(),
                                          .cache = &cache,
                                          .compute = compute});
    hidden.insert(hidden.end(), one.as<float>().begin(), one.as<float>().end());
  }
  EXPECT_EQ(cache.length(), ids.size());
  return hidden;
}

TEST(KeyValueCache, ATokenReadAfterOthersHasTheBitsOfTheSameTokenReadWithThem) {
  const std::vector<int64_t> ids = some_ids(23);
  for (const char* name : kModels) {
    const LoadedModel model = load(name);
    const tensor::Tensor whole = model.transformer.run({ids, {}});
    const std::vector<float> truth(whole.as<float>().begin(), whole.as<float>().end());
    EXPECT_EQ(in_parts(model.transformer, ids, {23}), truth) << name;
    EXPECT_EQ(in_parts(model.transformer, ids, {10, 13}), truth) << name;
    EXPECT_EQ(in_parts(model.transformer, ids, {1, 7, 2, 13}), truth) << name;
    EXPECT_EQ(in_parts(model.transformer, ids, std::vector<size_t>(23, 1)), truth) << name;
  }
}

TEST(KeyValueCache, OfBfloat16HasTheBitsOfAPassThatRoundsItsKeys) {
  const std::vector<int64_t> ids = some_ids(23);
  constexpr auto kRounded = attention::Precision::bfloat16;
  for (const char* name : kModels) {
    const Transformer model = load(name).transformer;
    const tensor::Tensor whole = model.run({.ids = ids, .type_ids = {}, .kept = kRounded}),
                         floats = model.run({ids, {}});
    const std::vector<float> truth(whole.as<float>().begin(), whole.as<float>().end());
    EXPECT_NE(truth, std::vector<float>(floats.as<float>().begin(), floats.as<float>().end())) << name;
    EXPECT_EQ(in_parts(model, ids, {23}, kRounded), truth) << name;
    EXPECT_EQ(in_parts(model, ids, {1, 7, 2, 13}, kRounded), truth) << name;
    EXPECT_EQ(in_parts(model, ids, std::vector<size_t>(23, 1), kRounded), truth) << name;
  }
}

TEST(KeyValueCache, ProductsInBfloat16HaveTheSameBitsInAnyParts) {
  const std::vector<int64_t> ids = some_ids(23);
  constexpr auto kRounded = linear::Compute::bfloat16;
  for (const char* name : kModels) {
    const Transformer model = load(name).transformer;
    const tensor::Tensor whole = model.run({.ids = ids, .type_ids = {}, .compute = kRounded}),
                         floats = model.run({ids, {}});
    const std::vector<float> truth(whole.as<float>().begin(), whole.as<float>().end());
    EXPECT_NE(truth, std::vector<float>(floats.as<float>().begin(), floats.as<float>().end())) << name;
    EXPECT_EQ(in_parts(model, ids, {1, 7, 2, 13}, attention::Precision::single, kRounded), truth) << name;
    EXPECT_EQ(in_parts(model, ids, std::vector<size_t>(23, 1), attention::Precision::single, kRounded), truth) << name;
  }
}

TEST(KeyValueCache, OfBfloat16IsHalfAsLargeAndKnowsItsError) {
  const Transformer model = load("llama").transformer;
  const std::vector<int64_t> ids = some_ids(23);
  KeyValueCache floats(model.config()), rounded(model.config(), attention::Precision::bfloat16);
  model.run({.ids = ids, .type_ids = {}, .cache = &floats});
  model.run({.ids = ids, .type_ids = {}, .cache = &rounded});
  EXPECT_EQ(rounded.bytes() * 2, floats.bytes());
  EXPECT_EQ(floats.error().relative(), 0);
  EXPECT_GT(rounded.error().relative(), 0x1p-11);  // 2^-9 / sqrt(3) of a number whose leading digits are 1
  EXPECT_LT(rounded.error().relative(), 0x1p-9);
}

// The same model with room for longer texts.
LoadedModel load_longer(const std::string& name) {
  const auto source = std::filesystem::path(CLEARHEAD_TEST_DATA) / "decoders" / name;
  const tests::TemporaryFolder folder;
  std::string config = tests::read_bytes(source / "config.json");
  const std::string positions = R"("max_position_embeddings": 64)";
  config.replace(config.find(positions), positions.size(), R"("max_position_embeddings": 1024)");
  tests::write_bytes(folder / "config.json", config);
  std::filesystem::copy(source / "model.safetensors", folder / "model.safetensors");
  return load_model(std::make_shared<const format::Checkpoint>(format::Checkpoint::open(folder.path())));
}

TEST(KeyValueCache, LayersThatSeeNearTokensForgetTheOthersAndNoBitChanges) {
  const std::vector<int64_t> ids = some_ids(600);
  for (const char* name : {"mistral", "gemma3", "llama"}) {
    const LoadedModel model = load_longer(name);
    const tensor::Tensor whole = model.transformer.run({ids, {}});
    const std::vector<float> truth(whole.as<float>().begin(), whole.as<float>().end());
    EXPECT_EQ(in_parts(model.transformer, ids, {300, 1, 1, 298}), truth) << name;
    KeyValueCache cache(model.transformer.config());
    model.transformer.run({.ids = ids, .type_ids = {}, .cache = &cache});
    const ModelConfig& config = model.transformer.config();
    for (size_t layer = 0; layer < config.num_layers; ++layer) {
      EXPECT_EQ(cache.layer(layer).evicted(), config.attention_of(layer).left_window ? 512U : 0U) << name << layer;
    }
    EXPECT_LE(cache.bytes(), KeyValueCache::bytes(config, ids.size()));
  }
}

// Positions that are stretched for long texts: all parts are turned for the declared length, and for no other.
TEST(KeyValueCache, ATextIsTurnedForTheLengthThatWasDeclared) {
  const std::vector<int64_t> ids = some_ids(12);
  for (const char* name : {"llama_dynamic", "llama_longrope"}) {  // trained with 16 positions
    const LoadedModel model = load(name);
    const auto last = [&](size_t declared_len) {
      const tensor::Tensor hidden = model.transformer.run({.ids = ids, .type_ids = {}, .declared_len = declared_len});
      return std::vector<float>(hidden.as<float>().begin(), hidden.as<float>().end());
    };
    EXPECT_EQ(last(0), last(16)) << name;
    EXPECT_NE(last(16), last(24)) << name;
    KeyValueCache cache(model.transformer.config());
    EXPECT_EQ(tests::error_text([&] { model.transformer.run({.ids = ids, .type_ids = {}, .cache = &cache}); }),
              "usage: [model] expected the length of the whole text, on which its positions depend; found none");
    EXPECT_EQ(tests::error_text([&] { model.transformer.run({.ids = ids, .type_ids = {}, .declared_len = 11}); }),
              "usage: [model] expected at most 11 tokens, the declared length of the text; found 12");
    const size_t lengths[] = {5, 7};
    EXPECT_EQ(tests::error_text(
                  [&] { model.transformer.run({.ids = ids, .type_ids = {}, .lengths = lengths, .declared_len = 24}); }),
              "usage: [model] expected one text, whose length is declared; found several");
  }
}

TEST(KeyValueCache, MoreTokensThanPositionsAreRefused) {
  const LoadedModel model = load("llama");
  const std::vector<int64_t> ids = some_ids(64);
  KeyValueCache cache(model.transformer.config());
  model.transformer.run({.ids = std::span(ids).first(60), .type_ids = {}, .cache = &cache});
  EXPECT_EQ(tests::error_text(
                [&] { model.transformer.run({.ids = std::span(ids).first(5), .type_ids = {}, .cache = &cache}); }),
            "usage: [model] expected at most 64 tokens, the positions of the model; found 65");
  EXPECT_EQ(cache.length(), 60U);
}

TEST(KeyValueCache, ItsBytesAreCounted) {
  const ModelConfig config = load("llama").transformer.config();
  const size_t tile = 2 * 256 * (6 + 16) * 4;  // kv heads, keys, a key and a value up to a whole panel
  EXPECT_EQ(KeyValueCache::bytes(config, 0), 0U);
  EXPECT_EQ(KeyValueCache::bytes(config, 256), 2 * tile);
  EXPECT_EQ(KeyValueCache::bytes(config, 257), 2 * 2 * tile);
  EXPECT_EQ(KeyValueCache::bytes(config, 10, attention::Precision::bfloat16), tile);
  KeyValueCache cache(config);
  load("llama").transformer.run({.ids = some_ids(3), .type_ids = {}, .cache = &cache});
  EXPECT_EQ(cache.bytes(), KeyValueCache::bytes(config, 3));
  EXPECT_EQ(KeyValueCache::bytes(config, ~size_t{0}), ~size_t{0});
}

}  // namespace
}  // namespace clearhead::model
