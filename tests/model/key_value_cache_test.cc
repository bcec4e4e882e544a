// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/key_value_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "clearhead/model/families/family.h"
#include "clearhead/tensor/compare.h"
#include "tests/support/error_text.h"

namespace clearhead::model {
namespace {

const char* const kModels[] = {"llama", "mistral", "qwen2", "gemma2", "gemma3", "gpt_neox"};

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
std::vector<float> in_parts(const Transformer& model, std::span<const int64_t> ids, const std::vector<size_t>& parts) {
  KeyValueCache cache(model.config(), ids.size());
  std::vector<float> hidden;
  for (const size_t part : parts) {
    const tensor::Tensor one = model.run({.ids = ids.subspan(cache.length(), part), .type_ids = {}, .cache = &cache});
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
  EXPECT_EQ(KeyValueCache::bytes(config, 10), 2U * 10 * 2 * (6 + 6) * 4);
  EXPECT_EQ(KeyValueCache::bytes(config, ~size_t{0}), ~size_t{0});
}

}  // namespace
}  // namespace clearhead::model
