// SPDX-License-Identifier: Apache-2.0
// smollm2-135m-instruct from its GGUF, against transformers' float run of the same file.
#include <gtest/gtest.h>

#include "tests/model/gguf_golden.h"
#include "tests/support/model_folder.h"

namespace clearhead::model::decoder {
namespace {

constexpr size_t kStep = 48;

// One process loads the model for all of them.
TEST(Smollm2Golden, LogitsWeightsAndTheTokensThatFollowAreThoseOfTransformers) {
  const GgufGolden golden(tests::smollm2_file(), CLEARHEAD_TEST_DATA "/smollm2_golden.safetensors", kStep);
  golden.expect_lengths();
  golden.expect_prompts();
  golden.expect_sentences(CLEARHEAD_TEST_DATA "/smollm2_sentences.safetensors");
}

// The vocabulary's matrix is the embedding: once it is packed, rows come from there.
TEST(Smollm2, EmbeddingRowsHaveTheSameBitsFromTheFileAndFromThePackedMap) {
  const auto open = [] {
    return load_model(std::make_shared<const format::Checkpoint>(format::Checkpoint::open(tests::smollm2_file())));
  };
  const LoadedModel unpacked = open(), packed = open();
  const Parameters& parameters = packed.transformer.parameters();
  parameters.vocabulary.get();
  EXPECT_EQ(unpacked.transformer.parameters().vocabulary.packed(), nullptr);
  std::vector<float> stored(576), mapped(576);
  for (const size_t id : {size_t{0}, size_t{17}, size_t{504}, parameters.token_embedding.rows() - 1}) {
    unpacked.transformer.parameters().token_embedding.read(id, stored);
    parameters.token_embedding.read(id, mapped);
    EXPECT_EQ(stored, mapped) << id;
  }
}

}  // namespace
}  // namespace clearhead::model::decoder
