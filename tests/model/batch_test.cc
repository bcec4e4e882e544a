// SPDX-License-Identifier: Apache-2.0
// Texts behind each other in one run: the bits that each has alone, whatever its companions and the threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "clearhead/base/parallel.h"
#include "clearhead/model/transformer.h"
#include "clearhead/model/workspace.h"
#include "clearhead/tensor/compare.h"
#include "tests/engine/random_model.h"
#include "tests/support/error_text.h"
#include "tests/support/stage_collector.h"

namespace clearhead::model {
namespace {

using capture::Stage;
using tests::error_text;

struct Texts {
  std::vector<int64_t> ids, types;
  std::vector<size_t> lengths;

  explicit Texts(std::vector<size_t> all_lengths, const ModelConfig& config) : lengths(std::move(all_lengths)) {
    const size_t rows = std::reduce(lengths.begin(), lengths.end());
    for (size_t i = 0; i < rows; ++i) {
      ids.push_back(static_cast<int64_t>((11 * i + i * i) % config.vocab_size));
      types.push_back(config.type_vocab_size == 0 ? 0 : static_cast<int64_t>(i / 3 % config.type_vocab_size));
    }
  }

  ModelInput all() const { return {ids, types, lengths}; }
  ModelInput only(size_t text) const {
    const size_t first = std::reduce(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(text));
    return {std::span(ids).subspan(first, lengths[text]), std::span(types).subspan(first, lengths[text])};
  }
};

const std::vector<size_t> kLengths = {5, 1, 260, 17, 17, 96, 2};

class Batch : public testing::TestWithParam<ModelConfig (*)()> {};

TEST_P(Batch, EachTextHasTheBitsThatItHasAlone) {
  const ModelConfig config = GetParam()();
  const Transformer model = tests::random_model(config);
  const Texts texts(kLengths, config);
  std::vector<tensor::Tensor> alone;
  for (size_t text = 0; text < kLengths.size(); ++text) alone.push_back(model.run(texts.only(text)));
  const size_t threads_before = base::num_threads();
  for (size_t threads : {1, 2, 3}) {
    base::set_num_threads(threads);
    const tensor::Tensor together = model.run(texts.all());
    size_t row = 0;
    for (size_t text = 0; text < kLengths.size(); row += kLengths[text++]) {
      const auto part = together.as<float>().subspan(row * config.d_model, kLengths[text] * config.d_model);
      const tensor::TensorView view(tensor::DType::f32, alone[text].shape(), std::as_bytes(part));
      EXPECT_TRUE(tensor::same_bits(view, alone[text])) << "text " << text << " with " << threads << " threads";
    }
  }
  base::set_num_threads(threads_before);
}

TEST_P(Batch, AWorkspaceThatHasBeenUsedChangesNoBit) {
  const ModelConfig config = GetParam()();
  const Transformer model = tests::random_model(config);
  Workspace workspace;
  for (const std::vector<size_t>& lengths : {kLengths, std::vector<size_t>{3}, std::vector<size_t>{40, 7}}) {
    const Texts texts(lengths, config);
    const std::span<const float> found = model.run(texts.all(), workspace);
    const tensor::Tensor expected = model.run(texts.all());
    EXPECT_TRUE(std::ranges::equal(found, expected.as<float>()));
  }
}

// What stands in one text's rows of a stage of tokens.
TEST_P(Batch, StagesOfATextAreThoseThatItHasAlone) {
  const ModelConfig config = GetParam()();
  const Transformer model = tests::random_model(config);
  const Texts texts({4, 9, 6}, config);
  tests::StageCollector together({Stage::embedding, Stage::query, Stage::weights, Stage::layer_output});
  tests::StageCollector alone({Stage::embedding, Stage::query, Stage::weights, Stage::layer_output});
  model.run(texts.all(), &together);
  model.run(texts.only(1), &alone);
  for (Stage stage : {Stage::embedding, Stage::query, Stage::layer_output}) {
    const auto all = together.get(stage).as<float>(), part = alone.get(stage).as<float>();
    EXPECT_TRUE(std::ranges::equal(all.subspan(4 * part.size() / 9, part.size()), part)) << capture::info(stage).name;
  }
  const auto weights = together.get(Stage::weights).as<float>(), own = alone.get(Stage::weights).as<float>();
  for (size_t head = 0; head < config.attention.num_heads; ++head) {
    for (size_t i = 0; i < 19; ++i) {
      for (size_t j = 0; j < 19; ++j) {
        const float found = weights[(head * 19 + i) * 19 + j];
        const bool from = i >= 4 && i < 13, to = j >= 4 && j < 13;  // in the text that is looked at
        if (from && to) {
          ASSERT_EQ(found, own[(head * 9 + i - 4) * 9 + j - 4]);
        } else if (from != to) {
          ASSERT_EQ(found, 0) << i << " sees " << j;
        }
      }
    }
  }
}

std::string name_of(const testing::TestParamInfo<ModelConfig (*)()>& tested) {
  const char* const names[] = {"encoder", "decoder", "attention_only"};
  return names[tested.index];
}

INSTANTIATE_TEST_SUITE_P(Models, Batch,
                         testing::Values(&tests::encoder_config, &tests::decoder_config, &tests::attention_only_config),
                         name_of);

TEST(BatchInput, LengthsThatDoNotFitAreRefused) {
  const ModelConfig config = tests::encoder_config();
  const Transformer model = tests::random_model(config);
  const Texts texts({4, 5}, config);
  const auto complaint = [&](std::vector<size_t> lengths) {
    return error_text([&] { model.run({texts.ids, texts.types, lengths}); });
  };
  EXPECT_EQ(complaint({4, 4}), "usage: [model] expected texts of 9 tokens together; found 8");
  EXPECT_EQ(complaint({4, 0, 5}), "usage: [model] expected at least one token; found none");
  const Texts long_text({301}, config);
  EXPECT_EQ(error_text([&] { model.run(long_text.all()); }),
            "usage: [model] expected at most 300 tokens, the positions of the model; found 301");
}

}  // namespace
}  // namespace clearhead::model
