// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "run_op.h"

namespace clearhead::tests {
namespace {

using tensor::DType;
using tensor::Shape;

tensor::Tensor ids(Shape shape, const std::vector<int64_t>& values) {
  tensor::Tensor tensor(DType::i64, std::move(shape));
  std::ranges::copy(values, tensor.as<int64_t>().begin());
  return tensor;
}

// x = [1, 2, 3, 4] at position 1 with base 10,000.
Tensors one_token() {
  Tensors inputs;
  inputs["X"] = numbers({1, 1, 1, 4}, {1, 2, 3, 4});
  inputs["cos_cache"] = numbers({2, 2}, {1, 1, std::cos(1.0f), std::cos(0.01f)});
  inputs["sin_cache"] = numbers({2, 2}, {0, 0, std::sin(1.0f), std::sin(0.01f)});
  inputs["position_ids"] = ids({1, 1}, {1});
  return inputs;
}

void expect_near(const std::vector<float>& found, const std::vector<double>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-6) << i;
}

TEST(RotaryOperator, RotatesHalvesOrNeighbours) {
  expect_near(floats(OpRun()("rotary_embedding", one_token()).at("Y")),
              {-1.984110649, 1.959900667, 2.462377902, 4.019799668});
  expect_near(floats(OpRun()("rotary_embedding", one_token(), R"({"interleaved": 1})").at("Y")),
              {-1.142639664, 1.922075597, 2.959850668, 4.029799502});
}

TEST(RotaryOperator, LeavesTheRestOfAPartlyRotatedHead) {
  Tensors inputs = one_token();
  inputs["cos_cache"] = numbers({2, 1}, {1, std::cos(1.0f)});
  inputs["sin_cache"] = numbers({2, 1}, {0, std::sin(1.0f)});
  const std::vector<float> y = floats(OpRun()("rotary_embedding", inputs, R"({"rotary_embedding_dim": 2})").at("Y"));
  expect_near(y, {std::cos(1.0) - 2 * std::sin(1.0), std::sin(1.0) + 2 * std::cos(1.0), 3, 4});
}

TEST(RotaryOperator, TakesAnglesByTokenWithoutPositions) {
  Tensors inputs = one_token();
  inputs.erase("position_ids");
  inputs["cos_cache"] = numbers({1, 1, 2}, {std::cos(1.0f), std::cos(0.01f)});
  inputs["sin_cache"] = numbers({1, 1, 2}, {std::sin(1.0f), std::sin(0.01f)});
  EXPECT_TRUE(
      tensor::same_bits(OpRun()("rotary_embedding", inputs).at("Y"), OpRun()("rotary_embedding", one_token()).at("Y")));
}

TEST(RotaryOperator, ComputesEveryTypeAndAnswersInIt) {
  const std::vector<float> want = floats(OpRun()("rotary_embedding", one_token()).at("Y"));
  for (const auto& [dtype, tolerance] : {std::pair(DType::f64, 1e-6), {DType::f16, 4e-3}, {DType::bf16, 3e-2}}) {
    Tensors inputs = one_token();
    for (const char* name : {"X", "cos_cache", "sin_cache"}) inputs[name] = tensor::to_dtype(inputs[name], dtype);
    const Tensors outputs = OpRun()("rotary_embedding", inputs);
    EXPECT_EQ(outputs.at("Y").dtype(), dtype);
    const std::vector<float> y = floats(outputs.at("Y"));
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(y[i], want[i], tolerance);
  }
}

TEST(RotaryOperator, ChecksEverything) {
  const std::string prefix = "usage: [op rotary_embedding] expected ";
  const auto error = [](const char* name, tensor::Tensor changed, const std::string& attributes = "{}") {
    Tensors inputs = one_token();
    inputs[name] = std::move(changed);
    return OpRun().error("rotary_embedding", inputs, attributes);
  };
  const tensor::Tensor x = numbers({1, 1, 1, 4}, {1, 2, 3, 4});
  EXPECT_EQ(error("X", tensor::Tensor({4})),
            prefix + "X of shape [batch, heads, len, dim] or [batch, len, heads * dim]; found [4]");
  EXPECT_EQ(error("X", tensor::Tensor({1, 1, 4})), prefix + "attribute num_heads beside a 3D input; found none");
  EXPECT_EQ(error("X", tensor::Tensor({1, 1, 4}), R"({"num_heads": 3})"),
            prefix + "X of shape [batch, len, a multiple of num_heads = 3]; found [1, 1, 4]");
  EXPECT_EQ(error("X", tensor::clone(x), R"({"num_heads": 2})"),
            prefix + "X of shape [batch, num_heads = 2, len, dim]; found [1, 1, 1, 4]");
  EXPECT_EQ(error("X", tensor::clone(x), R"({"rotary_embedding_dim": 3})"),
            prefix + "an even number of rotated elements, at most 4; found 3");
  EXPECT_EQ(error("X", tensor::clone(x), R"({"rotary_embedding_dim": 6})"),
            prefix + "an even number of rotated elements, at most 4; found 6");
  EXPECT_EQ(error("X", tensor::clone(x), R"({"rotary_embedding_dim": -2})"),
            prefix + "attribute rotary_embedding_dim to be at least 0; found -2");
  EXPECT_EQ(error("position_ids", ids({1, 1}, {2})),
            prefix + "position_ids from 0 to below 2, the rows of cos_cache; found 2");
  EXPECT_EQ(error("position_ids", ids({1, 1}, {-1})),
            prefix + "position_ids from 0 to below 2, the rows of cos_cache; found -1");
  EXPECT_EQ(error("position_ids", ids({1, 2}, {0, 0})),
            prefix + "position_ids of shape [batch, len] = [1, 1]; found [1, 2]");
  EXPECT_EQ(error("position_ids", tensor::Tensor({1, 1})), prefix + "position_ids of type I64; found F32");
  EXPECT_EQ(error("cos_cache", tensor::Tensor({1, 1, 2})),
            prefix + "cos_cache of shape [positions, rotary dim / 2]; found [1, 1, 2]");
  EXPECT_EQ(error("sin_cache", tensor::Tensor({3, 2})),
            prefix + "sin_cache of shape [positions, rotary dim / 2] = [2, 2]; found [3, 2]");
  EXPECT_EQ(error("extra", tensor::Tensor({1})),
            prefix + "an input of X, cos_cache, position_ids, sin_cache; found \"extra\"");
  EXPECT_EQ(error("X", tensor::clone(x), R"({"heads": 1})"),
            prefix + "an attribute of interleaved, num_heads, rotary_embedding_dim; found \"heads\"");
}

}  // namespace
}  // namespace clearhead::tests
