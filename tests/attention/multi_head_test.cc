// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/multi_head_attention.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "clearhead/attention/projection.h"
#include "clearhead/attention/reference_multi_head.h"
#include "problem.h"
#include "tests/support/error_text.h"

namespace clearhead::tests {
namespace {

using capture::Stage;

tensor::Tensor filled(tensor::Shape shape, uint64_t seed, float factor = 1.0f) {
  tensor::Tensor values(std::move(shape));
  for (size_t i = 0; i < values.elements(); ++i) values.as<float>()[i] = hashed_value(seed, i) * factor;
  return values;
}

std::vector<double> doubles(const tensor::Tensor& values) {
  return {values.as<float>().begin(), values.as<float>().end()};
}

// A layer with reproducible parameters and inputs, for the fast path and for the reference.
struct Layer {
  attention::AttentionConfig config;
  size_t batch, query_len, key_len, d_model, appended = 0;
  tensor::Tensor weights[4], biases[4];  // of query, key, value, output
  tensor::Tensor appended_key, appended_value, query, key;

  Layer(const ProblemSizes& sizes, size_t width, size_t extra = 0)
      : batch(sizes.batch), query_len(sizes.query_len), key_len(sizes.key_len), d_model(width), appended(extra) {
    config.num_heads = sizes.num_heads;
    config.num_kv_heads = sizes.num_kv_heads;
    config.head_dim = sizes.head_dim;
    config.value_dim = sizes.value_dim;
    const size_t key_width = config.num_kv_heads * config.head_dim;
    const size_t value_width = config.num_kv_heads * config.value_dim;
    const size_t out[4] = {config.num_heads * config.head_dim, key_width, value_width, d_model};
    for (size_t role = 0; role < 4; ++role) {
      const size_t in = role == 3 ? config.num_heads * config.value_dim : d_model;
      weights[role] = filled({out[role], in}, 10 + role, 2.0f / std::sqrt(static_cast<float>(in)));
      biases[role] = filled({out[role]}, 20 + role);
    }
    appended_key = filled({appended, key_width}, 30);
    appended_value = filled({appended, value_width}, 31);
    query = filled({batch, query_len, d_model}, 40);
    key = filled({batch, key_len, d_model}, 41);
  }

  attention::MultiHeadParameters parameters() const {
    const auto pack = [this](size_t role) { return linear::PackedLinear(weights[role], biases[role].view()); };
    return {pack(0), pack(1), pack(2), pack(3), tensor::clone(appended_key), tensor::clone(appended_value)};
  }
  attention::MultiHeadInput input() const {
    return {batch, query_len, key_len, query.as<float>(), key.as<float>(), key.as<float>(), {}};
  }
  attention::MultiHeadOutput run(capture::Observer* observer = nullptr) const {
    return attention::multi_head_attention(config, parameters(), input(), observer);
  }
  attention::ReferenceMultiHeadOutput reference() const {
    const auto role = [this](size_t i) {
      return attention::ReferenceProjection{doubles(weights[i]), doubles(biases[i])};
    };
    const std::vector<double> q = doubles(query), k = doubles(key);
    return attention::reference_multi_head_attention(
        config, {role(0), role(1), role(2), role(3), doubles(appended_key), doubles(appended_value)},
        {batch, query_len, key_len, q, k, k, {}});
  }
};

TEST(MultiHeadAttention, AgreesWithTheReferenceOnEveryStage) {
  const ProblemSizes grid[] = {
      {.batch = 2, .query_len = 5, .key_len = 7, .num_heads = 2, .num_kv_heads = 2, .head_dim = 8, .value_dim = 8},
      {.batch = 1, .query_len = 3, .key_len = 300, .num_heads = 4, .num_kv_heads = 2, .head_dim = 5, .value_dim = 9},
      {.batch = 3, .query_len = 1, .key_len = 1, .num_heads = 3, .num_kv_heads = 1, .head_dim = 17, .value_dim = 2},
  };
  for (const ProblemSizes& sizes : grid) {
    for (size_t appended : {0, 2}) {
      const Layer layer(sizes, 20, appended);
      Everything seen;
      const auto output = layer.run(&seen);
      const auto want = layer.reference();
      EXPECT_LE(largest_difference(seen.values(Stage::query), want.query), 2e-6);
      EXPECT_LE(largest_difference(seen.values(Stage::key), want.key), 2e-6);
      EXPECT_LE(largest_difference(seen.values(Stage::value), want.value), 2e-6);
      EXPECT_LE(largest_difference(seen.values(Stage::weights), want.attention.weights), 2e-6);
      EXPECT_LE(largest_difference(seen.values(Stage::head_output), want.attention.head_output), 4e-6);
      EXPECT_LE(largest_difference(floats(output.attention_output), want.attention_output), 1e-5);
      EXPECT_EQ(output.attention_output.shape(), tensor::Shape({sizes.batch, sizes.query_len, 20}));
      EXPECT_EQ(seen.get(Stage::key).shape(),
                tensor::Shape({sizes.batch, sizes.key_len + appended, sizes.num_kv_heads, sizes.head_dim}));
    }
  }
}

TEST(MultiHeadAttention, HasTheShapesOfTheTextbook) {
  const Layer layer(
      {.query_len = 64, .key_len = 64, .num_heads = 8, .num_kv_heads = 8, .head_dim = 64, .value_dim = 64}, 512);
  Everything seen;
  const auto output = layer.run(&seen);
  EXPECT_EQ(seen.get(Stage::query).shape(), tensor::Shape({1, 64, 8, 64}));
  EXPECT_EQ(seen.get(Stage::raw_scores).shape(), tensor::Shape({1, 8, 64, 64}));
  EXPECT_EQ(seen.get(Stage::head_output).shape(), tensor::Shape({1, 64, 8, 64}));
  EXPECT_EQ(seen.get(Stage::head_contribution).shape(), tensor::Shape({1, 64, 8, 512}));
  EXPECT_EQ(output.attention_output.shape(), tensor::Shape({1, 64, 512}));
  EXPECT_LE(largest_difference(floats(output.attention_output), layer.reference().attention_output), 1e-5);
}

TEST(MultiHeadAttention, ContributionsOfTheHeadsAndTheBiasAddUpToTheOutput) {
  for (size_t d_model : {16, 20, 100}) {
    const Layer layer(
        {.batch = 2, .query_len = 50, .key_len = 9, .num_heads = 3, .num_kv_heads = 3, .head_dim = 7, .value_dim = 11},
        d_model);
    Everything seen;
    layer.run(&seen);
    const auto contributions = seen.values(Stage::head_contribution), output = seen.values(Stage::attention_output);
    for (size_t row = 0; row < 100; ++row) {
      for (size_t i = 0; i < d_model; ++i) {
        double sum = layer.biases[3].as<float>()[i];
        for (size_t head = 0; head < 3; ++head) sum += contributions[(row * 3 + head) * d_model + i];
        ASSERT_NEAR(output[row * d_model + i], sum, (33 + 8) * 0x1p-24 * 8);
      }
    }
  }
}

TEST(MultiHeadAttention, GivesTheSameBitsWhetherSomebodyWatchesOrNot) {
  const Layer layer(
      {.batch = 2, .query_len = 33, .key_len = 260, .num_heads = 4, .num_kv_heads = 2, .head_dim = 12, .value_dim = 10},
      30, 1);
  Everything seen;
  EXPECT_TRUE(same_bits(floats(layer.run(&seen).attention_output), floats(layer.run().attention_output)));
  EXPECT_TRUE(same_bits(seen.values(Stage::attention_output), floats(layer.run().attention_output)));
}

TEST(MultiHeadAttention, OfAppendedKeysIsThatOfKeysThatAlwaysStoodThere) {
  const Layer with(
      {.batch = 1, .query_len = 4, .key_len = 6, .num_heads = 2, .num_kv_heads = 2, .head_dim = 8, .value_dim = 8}, 16,
      2);
  StageCollector seen({Stage::query, Stage::key, Stage::value, Stage::head_output});
  with.run(&seen);
  const auto direct = attention::exact_attention(with.config, {1,
                                                               4,
                                                               8,
                                                               seen.get(Stage::query).as<float>(),
                                                               seen.get(Stage::key).as<float>(),
                                                               seen.get(Stage::value).as<float>(),
                                                               {}});
  EXPECT_TRUE(same_bits(floats(direct.head_output), floats(seen.get(Stage::head_output))));
  const auto keys = seen.get(Stage::key).as<float>();
  EXPECT_TRUE(same_bits(keys.subspan(6 * 16), floats(with.appended_key)));
}

// Split::input in its own words: part h of each vector through square h.
std::vector<float> project_parts(const tensor::Tensor& input, const tensor::Tensor& squares) {
  const size_t heads = squares.shape()[0], dim = squares.shape()[1], rows = input.elements() / (heads * dim);
  std::vector<float> output(input.elements()), part(rows * dim), projected(rows * dim);
  for (size_t head = 0; head < heads; ++head) {
    const linear::PackedLinear square(tensor::TensorView(tensor::DType::f32, {dim, dim},
                                                         squares.bytes().subspan(head * dim * dim * 4, dim * dim * 4)));
    for (size_t row = 0; row < rows; ++row) {
      std::copy_n(input.as<float>().begin() + static_cast<std::ptrdiff_t>((row * heads + head) * dim), dim,
                  part.begin() + static_cast<std::ptrdiff_t>(row * dim));
    }
    linear::linear(part, rows, square, projected);
    for (size_t row = 0; row < rows; ++row) {
      std::copy_n(projected.begin() + static_cast<std::ptrdiff_t>(row * dim), dim,
                  output.begin() + static_cast<std::ptrdiff_t>((row * heads + head) * dim));
    }
  }
  return output;
}

TEST(MultiHeadAttention, CuttingTheInputIsTheBlockDiagonalCaseBitForBit) {
  const size_t heads = 8, dim = 16;
  const tensor::Tensor input = filled({1, 10, heads * dim}, 50);
  attention::AttentionConfig config{.num_heads = heads, .num_kv_heads = heads, .head_dim = dim, .value_dim = dim};
  std::vector<float> parts[3];
  attention::MultiHeadParameters parameters;
  linear::PackedLinear* roles[3] = {&parameters.query, &parameters.key, &parameters.value};
  for (size_t role = 0; role < 3; ++role) {
    const tensor::Tensor squares = filled({heads, dim, dim}, 60 + role);
    parts[role] = project_parts(input, squares);
    *roles[role] = linear::PackedLinear(attention::block_diagonal(squares));
  }
  parameters.output = linear::PackedLinear(filled({heads * dim, heads * dim}, 70));
  Everything seen;
  const auto x = input.as<float>();
  attention::multi_head_attention(config, parameters, {1, 10, 10, x, x, x, {}}, &seen);
  EXPECT_TRUE(same_bits(seen.values(Stage::query), parts[0]));
  EXPECT_TRUE(same_bits(seen.values(Stage::key), parts[1]));
  EXPECT_TRUE(same_bits(seen.values(Stage::value), parts[2]));
  const auto direct = attention::exact_attention(config, {1, 10, 10, parts[0], parts[1], parts[2], {}});
  EXPECT_TRUE(same_bits(seen.values(Stage::head_output), floats(direct.head_output)));
}

TEST(MultiHeadAttention, BlockDiagonalPutsSquaresOnTheDiagonal) {
  tensor::Tensor squares({2, 2, 2});
  for (size_t i = 0; i < 8; ++i) squares.as<float>()[i] = static_cast<float>(i + 1);
  const tensor::Tensor matrix = attention::block_diagonal(squares);
  EXPECT_EQ(matrix.shape(), tensor::Shape({4, 4}));
  EXPECT_EQ(floats(matrix), (std::vector<float>{1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 5, 6, 0, 0, 7, 8}));
  EXPECT_EQ(error_text([&] {
              attention::block_diagonal(filled({2, 3, 4}, 1));
            }),
            "usage: [block_diagonal] expected squares [num_heads, head_dim, head_dim]; found [2, 3, 4]");
}

TEST(MultiHeadAttention, RefusesWhatDoesNotFit) {
  const ProblemSizes sizes{
      .query_len = 2, .key_len = 3, .num_heads = 2, .num_kv_heads = 2, .head_dim = 4, .value_dim = 4};
  Layer layer(sizes, 8);
  layer.query_len = 3;
  EXPECT_EQ(error_text([&] { layer.run(); }),
            "usage: [attention] expected query of shape [1, 3, 8]; found 16 elements");
  Layer narrow(sizes, 8);
  narrow.config.head_dim = 3;
  EXPECT_EQ(error_text([&] { narrow.run(); }),
            "usage: [attention] expected a projection of query to 2 heads of 3; found 8 outputs");
  narrow.config.head_dim = 4;
  narrow.config.value_dim = 5;
  EXPECT_EQ(error_text([&] { narrow.run(); }),
            "usage: [attention] expected an output projection of 2 heads of 5; found 8 inputs");
  Layer appended(sizes, 8, 2);
  appended.appended_value = filled({1, 8}, 1);
  EXPECT_EQ(error_text([&] { appended.run(); }),
            "usage: [attention] expected value of shape [1, 5, 2, 4]; found 32 elements");
}

}  // namespace
}  // namespace clearhead::tests
