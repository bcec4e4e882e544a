// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "clearhead/model/embedding.h"
#include "clearhead/model/parameter_source.h"
#include "clearhead/model/transformer.h"
#include "clearhead/tensor/compare.h"
#include "tests/model/plain_twin.h"
#include "tests/model/tensor_bag.h"
#include "tests/support/error_text.h"
#include "tests/support/stage_collector.h"

namespace clearhead::model {
namespace {

using capture::Stage;

constexpr size_t kVocab = 13, kPositions = 20, kWidth = 12, kHeads = 3, kWide = 40;

// A decoder in the manner of GPT-2: pre-norm, causal, matrices stored [inputs, outputs], query, key and value in one
// tensor, a last norm.
ModelConfig decoder_config(size_t layers) {
  ModelConfig config;
  config.family = "test";
  config.vocab_size = kVocab;
  config.context_len = kPositions;
  config.num_layers = layers;
  config.d_model = kWidth;
  config.d_ff = kWide;
  config.norm_placement = NormPlacement::pre;
  config.norm_epsilon = 1e-5f;
  config.activation = linear::Activation::gelu_tanh;
  config.attention.num_heads = config.attention.num_kv_heads = kHeads;
  config.attention.head_dim = config.attention.value_dim = kWidth / kHeads;
  config.attention.causal = attention::Causal::top_left;
  return config;
}

void fill_decoder(TensorBag& bag, size_t layers) {
  const auto norm = [&](const std::string& name) {
    bag.add(name + ".weight", {kWidth}, 0.3f, 1);
    bag.add(name + ".bias", {kWidth});
  };
  const auto conv1d = [&](const std::string& name, size_t inputs, size_t outputs) {
    bag.add(name + ".weight", {inputs, outputs});
    bag.add(name + ".bias", {outputs});
  };
  bag.add("wte.weight", {kVocab, kWidth}, 1);
  bag.add("wpe.weight", {kPositions, kWidth}, 1);
  for (size_t layer = 0; layer < layers; ++layer) {
    const std::string block = fmt::format("h.{}.", layer);
    norm(block + "ln_1");
    conv1d(block + "attn.c_attn", kWidth, 3 * kWidth);
    conv1d(block + "attn.c_proj", kWidth, kWidth);
    norm(block + "ln_2");
    conv1d(block + "mlp.c_fc", kWidth, kWide);
    conv1d(block + "mlp.c_proj", kWide, kWidth);
  }
  norm("ln_f");
}

// The outputs [first, first + outputs) of a matrix stored [inputs, all outputs], turned to [outputs, inputs].
attention::ReferenceProjection turned(const TensorBag& bag, const std::string& name, size_t inputs, size_t outputs,
                                      size_t first = 0) {
  const std::vector<double> stored = bag.doubles(name + ".weight"), bias = bag.doubles(name + ".bias");
  attention::ReferenceProjection projection;
  for (size_t out = first; out < first + outputs; ++out) {
    for (size_t in = 0; in < inputs; ++in) projection.weight.push_back(stored[in * bias.size() + out]);
    projection.bias.push_back(bias[out]);
  }
  return projection;
}

plain::Model plain_decoder(const TensorBag& bag, size_t layers) {
  const auto norm = [&](const std::string& name) {
    return plain::Norm{bag.doubles(name + ".weight"), bag.doubles(name + ".bias")};
  };
  plain::Model model;
  model.token_embedding = bag.doubles("wte.weight");
  model.position_embedding = bag.doubles("wpe.weight");
  model.final_norm = norm("ln_f");
  for (size_t layer = 0; layer < layers; ++layer) {
    const std::string name = fmt::format("h.{}.", layer);
    plain::Block block;
    block.attention.query = turned(bag, name + "attn.c_attn", kWidth, kWidth, 0);
    block.attention.key = turned(bag, name + "attn.c_attn", kWidth, kWidth, kWidth);
    block.attention.value = turned(bag, name + "attn.c_attn", kWidth, kWidth, 2 * kWidth);
    block.attention.output = turned(bag, name + "attn.c_proj", kWidth, kWidth);
    block.feed_forward_in = turned(bag, name + "mlp.c_fc", kWidth, kWide);
    block.feed_forward_out = turned(bag, name + "mlp.c_proj", kWide, kWidth);
    block.attention_norm = norm(name + "ln_1");
    block.feed_forward_norm = norm(name + "ln_2");
    model.blocks.push_back(std::move(block));
  }
  return model;
}

Parameters read_decoder(ParameterSource& source, size_t layers) {
  const auto norm = [&](const std::string& name) { return source.norm(name + ".weight", name + ".bias", kWidth); };
  const auto conv1d = [&](const std::string& name, size_t inputs, size_t outputs, size_t first, size_t stored) {
    return source.linear({.weight = name + ".weight",
                          .bias = name + ".bias",
                          .outputs = outputs,
                          .inputs = inputs,
                          .orientation = Orientation::in_out,
                          .first_output = first,
                          .stored_outputs = stored});
  };
  Parameters parameters;
  parameters.token_embedding = source.table("wte.weight", kVocab, kWidth);
  parameters.position_embedding = source.table("wpe.weight", kPositions, kWidth);
  for (size_t layer = 0; layer < layers; ++layer) {
    const std::string name = fmt::format("h.{}.", layer), heads = name + "attn.c_attn";
    BlockParameters block;
    block.attention.query = conv1d(heads, kWidth, kWidth, 0, 3 * kWidth);
    block.attention.key = conv1d(heads, kWidth, kWidth, kWidth, 3 * kWidth);
    block.attention.value = conv1d(heads, kWidth, kWidth, 2 * kWidth, 3 * kWidth);
    block.attention.output = conv1d(name + "attn.c_proj", kWidth, kWidth, 0, kWidth);
    block.attention_norm = norm(name + "ln_1");
    block.feed_forward_in = conv1d(name + "mlp.c_fc", kWidth, kWide, 0, kWide);
    block.feed_forward_out = conv1d(name + "mlp.c_proj", kWide, kWidth, 0, kWidth);
    block.feed_forward_norm = norm(name + "ln_2");
    parameters.blocks.push_back(std::move(block));
  }
  parameters.final_norm = norm("ln_f");
  return parameters;
}

const std::vector<int64_t> kIds = {3, 0, 12, 7, 7, 1, 9};

TEST(PreNorm, ADecoderWithOnePackedProjectionComputesWhatThePlainTwinComputes) {
  for (size_t layers : {1, 3}) {
    TensorBag bag;
    fill_decoder(bag, layers);
    ParameterSource source(bag.checkpoint(), "");
    const Transformer model(decoder_config(layers), read_decoder(source, layers));
    EXPECT_TRUE(source.unused().empty());
    const tensor::Tensor hidden = model.run({kIds, {}});
    const plain::Values truth = plain::forward(model.config(), plain_decoder(bag, layers), kIds);
    ASSERT_EQ(hidden.elements(), truth.size());
    for (size_t i = 0; i < truth.size(); ++i) EXPECT_NEAR(hidden.as<float>()[i], truth[i], 1e-5) << i;
  }
}

TEST(PreNorm, AFutureTokenChangesNothingBeforeIt) {
  TensorBag bag;
  fill_decoder(bag, 2);
  ParameterSource source(bag.checkpoint(), "");
  const Transformer model(decoder_config(2), read_decoder(source, 2));
  std::vector<int64_t> other = kIds;
  other.back() = 2;
  const tensor::Tensor one = model.run({kIds, {}}), two = model.run({other, {}});
  const size_t before = (kIds.size() - 1) * kWidth;
  for (size_t i = 0; i < before; ++i) EXPECT_EQ(one.as<float>()[i], two.as<float>()[i]);
  EXPECT_NE(one.as<float>()[before], two.as<float>()[before]);
}

TEST(PreNorm, StagesBehindANormShowTheNormedValues) {
  TensorBag bag;
  fill_decoder(bag, 1);
  ParameterSource source(bag.checkpoint(), "");
  const Transformer model(decoder_config(1), read_decoder(source, 1));
  tests::StageCollector collector({Stage::embedding, Stage::attention_input, Stage::attention_block_output,
                                   Stage::feed_forward_input, Stage::feed_forward_hidden, Stage::layer_output});
  const tensor::Tensor hidden = model.run({kIds, {}}, &collector);
  const plain::Model twin = plain_decoder(bag, 1);
  const auto expect_normed = [&](const tensor::Tensor& from, const plain::Norm& norm, const tensor::Tensor& seen) {
    const auto values = from.as<float>();
    const plain::Values truth = plain::normed(norm, 1e-5, {values.begin(), values.end()});
    for (size_t i = 0; i < truth.size(); ++i) ASSERT_NEAR(seen.as<float>()[i], truth[i], 1e-5);
  };
  expect_normed(collector.get(Stage::embedding), twin.blocks[0].attention_norm, collector.get(Stage::attention_input));
  expect_normed(collector.get(Stage::attention_block_output), twin.blocks[0].feed_forward_norm,
                collector.get(Stage::feed_forward_input));
  expect_normed(collector.get(Stage::layer_output), twin.final_norm, hidden);
  EXPECT_EQ(collector.get(Stage::feed_forward_hidden).shape(), (tensor::Shape{1, kIds.size(), kWide}));
}

TEST(NoNorm, ABlockWithoutFeedForwardIsAttentionAndTheInput) {
  TensorBag bag;
  fill_decoder(bag, 1);
  ParameterSource source(bag.checkpoint(), "");
  ModelConfig config = decoder_config(1);
  config.norm_placement = NormPlacement::none;
  config.d_ff = 0;
  Parameters parameters = read_decoder(source, 1);
  parameters.blocks[0].feed_forward_in = {};
  parameters.blocks[0].feed_forward_out = {};
  const Transformer model(config, std::move(parameters));
  tests::StageCollector collector({Stage::attention_block_output, Stage::layer_output, Stage::feed_forward_output});
  const tensor::Tensor hidden = model.run({kIds, {}}, &collector);
  const plain::Values truth = plain::forward(config, plain_decoder(bag, 1), kIds);
  for (size_t i = 0; i < truth.size(); ++i) EXPECT_NEAR(hidden.as<float>()[i], truth[i], 1e-5) << i;
  EXPECT_TRUE(tensor::same_bits(collector.get(Stage::attention_block_output), hidden));
  EXPECT_TRUE(tensor::same_bits(collector.get(Stage::layer_output), hidden));
  EXPECT_FALSE(collector.has(Stage::feed_forward_output));
}

TEST(ParameterSource, RowsOfAPackedTensorAreCutToo) {
  TensorBag bag;
  bag.add("qkv.weight", {7, 3});
  bag.add("qkv.bias", {7});
  ParameterSource source(bag.checkpoint(), "");
  const linear::PackedLinear part = source.linear({.weight = "qkv.weight",
                                                   .bias = "qkv.bias",
                                                   .outputs = 2,
                                                   .inputs = 3,
                                                   .orientation = Orientation::out_in,
                                                   .first_output = 4,
                                                   .stored_outputs = 7});
  const std::vector<float> x = {1, -2, 0.5f};
  std::vector<float> y(2);
  linear::linear(x, 1, part, y);
  const std::vector<double> weight = bag.doubles("qkv.weight"), bias = bag.doubles("qkv.bias");
  for (size_t out = 0; out < 2; ++out) {
    const double* row = &weight[(4 + out) * 3];
    EXPECT_NEAR(y[out], row[0] - 2 * row[1] + 0.5 * row[2] + bias[4 + out], 1e-6);
  }
}

TEST(ParameterSource, APartBeyondTheTensorIsRefused) {
  TensorBag bag;
  bag.add("qkv.weight", {7, 3});
  ParameterSource source(bag.checkpoint(), "");
  const auto read = [&](size_t first, size_t stored) {
    return tests::error_text([&] {
      source.linear({.weight = "qkv.weight",
                     .bias = "",
                     .outputs = 2,
                     .inputs = 3,
                     .orientation = Orientation::out_in,
                     .first_output = first,
                     .stored_outputs = stored});
    });
  };
  EXPECT_EQ(read(5, 7), "no error");
  EXPECT_NE(read(6, 7).find("expected outputs 6 to 8 within the 7 of \"qkv.weight\""), std::string::npos) << read(6, 7);
  EXPECT_NE(read(0, 6).find("\"qkv.weight\" of shape [6, 3], as config.json implies; found shape [7, 3]"),
            std::string::npos);
}

TEST(Transformer, ParametersThatDoNotFitTheConfigAreRefused) {
  TensorBag bag;
  fill_decoder(bag, 1);
  ParameterSource source(bag.checkpoint(), "");
  const auto complaint = [&](const auto& change) {
    ModelConfig config = decoder_config(1);
    Parameters parameters = read_decoder(source, 1);
    change(config, parameters);
    return tests::error_text([&] { Transformer(config, std::move(parameters)); });
  };
  EXPECT_EQ(complaint([](ModelConfig&, Parameters&) {}), "no error");
  EXPECT_EQ(complaint([](ModelConfig& config, Parameters&) { config.num_layers = 2; }),
            "[model parameters] expected 2 blocks; found 1");
  EXPECT_EQ(complaint([](ModelConfig& config, Parameters&) { config.vocab_size = 12; }),
            "[model parameters] expected a token embedding of 12 rows; found 13");
  EXPECT_EQ(complaint([](ModelConfig&, Parameters& parameters) { parameters.final_norm = {}; }),
            "[model parameters] expected a final norm of 12 gains; found 0");
  EXPECT_EQ(complaint([](ModelConfig& config, Parameters&) { config.d_ff = 41; }),
            "[model parameters] expected layer 0, feed_forward_in [41, 12]; found [40, 12]");
  EXPECT_EQ(complaint([](ModelConfig& config, Parameters&) {
              config.attention.num_heads = 6;
              config.attention.num_kv_heads = 6;
            }),
            "[model parameters] expected layer 0, query [24, 12]; found [12, 12]");
}

TEST(SinusoidalPositions, AreThoseOfThePaper) {
  const EmbeddingTable table = sinusoidal_positions(6);
  std::vector<float> row(6);
  table.read(0, row);
  EXPECT_EQ(row, (std::vector<float>{0, 1, 0, 1, 0, 1}));
  for (size_t position : {1, 2, 511, 100000}) {
    table.read(position, row);
    for (size_t pair = 0; pair < 3; ++pair) {
      const double angle = static_cast<double>(position) / std::pow(10000.0, 2.0 * static_cast<double>(pair) / 6);
      EXPECT_EQ(row[2 * pair], static_cast<float>(std::sin(angle)));
      EXPECT_EQ(row[2 * pair + 1], static_cast<float>(std::cos(angle)));
    }
  }
}

}  // namespace
}  // namespace clearhead::model
