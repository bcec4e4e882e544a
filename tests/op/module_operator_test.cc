// SPDX-License-Identifier: Apache-2.0
// multi_head_attention, beside what golden_test compares with PyTorch, and softmax.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "run_op.h"

namespace clearhead::tests {
namespace {

using tensor::DType;
using tensor::Shape;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Tensors module_inputs() {
  Tensors inputs;
  inputs["query"] = hashed_tensor(1, {3, 2, 8});
  inputs["key"] = hashed_tensor(2, {5, 2, 8});
  inputs["value"] = hashed_tensor(3, {5, 2, 8});
  inputs["in_proj_weight"] = hashed_tensor(4, {24, 8}, 0.7f);
  inputs["in_proj_bias"] = hashed_tensor(5, {24});
  inputs["out_proj.weight"] = hashed_tensor(6, {8, 8}, 0.7f);
  inputs["out_proj.bias"] = hashed_tensor(7, {8});
  return inputs;
}

Tensors run_module(const Tensors& inputs, const std::string& attributes = R"({"num_heads": 2})") {
  return OpRun()("multi_head_attention", inputs, attributes);
}

std::string module_error(const std::string& name, tensor::Tensor changed,
                         const std::string& attributes = R"({"num_heads": 2})") {
  Tensors inputs = module_inputs();
  inputs[name] = std::move(changed);
  return OpRun().error("multi_head_attention", inputs, attributes);
}

TEST(ModuleOperator, GivesOutputAndWeightsPerHead) {
  const Tensors outputs = run_module(module_inputs());
  EXPECT_EQ(outputs.at("attn_output").shape(), Shape({3, 2, 8}));
  EXPECT_EQ(outputs.at("attn_output_weights").shape(), Shape({2, 2, 3, 5}));
  const Tensors only = OpRun()("multi_head_attention", module_inputs(), R"({"num_heads": 2})", {"attn_output"});
  ASSERT_EQ(only.size(), 1u);
  EXPECT_TRUE(tensor::same_bits(only.at("attn_output"), outputs.at("attn_output")));
}

TEST(ModuleOperator, AgreesWithItselfInDouble) {
  Tensors inputs = module_inputs();
  inputs["bias_k"] = hashed_tensor(8, {1, 1, 8});
  inputs["bias_v"] = hashed_tensor(9, {1, 1, 8});
  inputs["attn_mask"] = hashed_tensor(10, {4, 3, 5});
  const std::string attributes = R"({"num_heads": 2, "add_zero_attn": true, "average_attn_weights": true})";
  Tensors doubles;
  for (const auto& [name, values] : inputs) doubles[name] = tensor::to_dtype(values, DType::f64);
  const Tensors ours = run_module(inputs, attributes), exact = run_module(doubles, attributes);
  for (const char* name : {"attn_output", "attn_output_weights"}) {
    EXPECT_EQ(exact.at(name).dtype(), DType::f64);
    EXPECT_EQ(ours.at(name).shape(), exact.at(name).shape());
    for (size_t i = 0; i < ours.at(name).elements(); ++i) {
      ASSERT_NEAR(ours.at(name).as<float>()[i], exact.at(name).as<double>()[i], 2e-6);
    }
  }
}

TEST(ModuleOperator, AnswersInSixteenBitsIfAskedInThem) {
  const std::vector<float> want = floats(run_module(module_inputs()).at("attn_output"));
  for (DType dtype : {DType::f16, DType::bf16}) {
    Tensors inputs;
    for (const auto& [name, values] : module_inputs()) inputs[name] = tensor::to_dtype(values, dtype);
    const Tensors outputs = run_module(inputs);
    EXPECT_EQ(outputs.at("attn_output").dtype(), dtype);
    EXPECT_EQ(outputs.at("attn_output_weights").dtype(), dtype);
    const std::vector<float> got = floats(outputs.at("attn_output"));
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 0.03);
  }
}

TEST(ModuleOperator, ReadsTrueAsMustNotAttendAndHidesKeysNotQueries) {
  Tensors inputs;
  inputs["key"] = tensor::Tensor({3, 1, 1});
  inputs["query"] = tensor::Tensor({3, 1, 1});
  inputs["value"] = numbers({3, 1, 1}, {1, 2, 3});
  inputs["in_proj_weight"] = numbers({3, 1}, {1, 1, 1});
  inputs["out_proj.weight"] = numbers({1, 1}, {1});
  inputs["key_padding_mask"] = truths({1, 3}, {false, false, true});
  const std::string one = R"({"num_heads": 1})";
  EXPECT_EQ(floats(run_module(inputs, one).at("attn_output")), (std::vector<float>{1.5f, 1.5f, 1.5f}));
  // Two lowest floats in one place are a mask as well.
  const float lowest = std::numeric_limits<float>::lowest();
  inputs["key_padding_mask"] = numbers({1, 3}, {0, 0, lowest});
  inputs["attn_mask"] = numbers({3, 3}, {0, 0, lowest, 0, 0, lowest, lowest, lowest, lowest});
  EXPECT_EQ(floats(run_module(inputs, one).at("attn_output")), (std::vector<float>{1.5f, 1.5f, 0}));
  inputs.erase("attn_mask");
  EXPECT_EQ(floats(run_module(inputs, R"({"num_heads": 1, "is_causal": true})").at("attn_output")),
            (std::vector<float>{1, 1.5f, 1.5f}));
}

TEST(ModuleOperator, KeepsHeadsApartUnlessAskedToAverage) {
  Tensors inputs;
  inputs["query"] = numbers({1, 1, 2}, {1, 1});
  inputs["key"] = numbers({2, 1, 2}, {200, -200, -200, 200});
  inputs["value"] = numbers({2, 1, 2}, {1, 2, 3, 4});
  inputs["in_proj_weight"] = numbers({6, 2}, {1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1});
  inputs["out_proj.weight"] = numbers({2, 2}, {1, 0, 0, 1});
  EXPECT_EQ(floats(run_module(inputs).at("attn_output_weights")), (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(floats(run_module(inputs, R"({"num_heads": 2, "average_attn_weights": true})").at("attn_output_weights")),
            (std::vector<float>{0.5f, 0.5f}));
}

TEST(ModuleOperator, CuttingTheInputIsTheBlockDiagonalCase) {
  Tensors cut = module_inputs();
  cut["in_proj_weight"] = hashed_tensor(11, {3, 2, 4, 4});
  Tensors whole = module_inputs();
  whole["in_proj_weight"] = tensor::Tensor({24, 8});
  for (size_t i = 0; i < 96; ++i) {
    const size_t column = i % 4, row = i / 4 % 4, head = i / 16 % 2, role = i / 32;
    whole["in_proj_weight"].as<float>()[(role * 8 + head * 4 + row) * 8 + head * 4 + column] =
        cut["in_proj_weight"].as<float>()[i];
  }
  const Tensors a = run_module(cut, R"({"num_heads": 2, "split": "input"})");
  const Tensors b = run_module(whole, R"({"num_heads": 2, "split": "projection"})");
  EXPECT_TRUE(tensor::same_bits(a.at("attn_output"), b.at("attn_output")));
  EXPECT_TRUE(tensor::same_bits(a.at("attn_output_weights"), b.at("attn_output_weights")));
}

TEST(ModuleOperator, ChecksAttributesAndOutputs) {
  const auto error = [](const std::string& attributes, const std::vector<std::string>& outputs = {}) {
    return OpRun().error("multi_head_attention", module_inputs(), attributes, outputs);
  };
  const std::string prefix = "usage: [op multi_head_attention] expected ";
  EXPECT_EQ(error("{}"), prefix + "an attribute num_heads; found none");
  EXPECT_EQ(error(R"({"num_heads": 3})"), prefix + "a query whose width is a multiple of num_heads = 3; found width 8");
  EXPECT_EQ(error(R"({"num_heads": 2, "split": "half"})"),
            prefix + "attribute split to be \"projection\" or \"input\"; found \"half\"");
  EXPECT_EQ(error(R"({"num_heads": 2, "split": 1})"), prefix + "attribute split to be a text; found 1");
  EXPECT_EQ(error(R"({"num_heads": 2, "dropout": 0.5})"),
            prefix +
                "an attribute of add_zero_attn, average_attn_weights, batch_first, is_causal, num_heads, split; found "
                "\"dropout\"");
  EXPECT_EQ(error(R"({"num_heads": 2})", {"Y"}), prefix + "an output of attn_output, attn_output_weights; found \"Y\"");
  EXPECT_EQ(error(R"({"num_heads": 2})", {"attn_output", "attn_output"}),
            prefix + "each output named once; found attn_output twice");
}

TEST(ModuleOperator, ChecksInputs) {
  const std::string prefix = "usage: [op multi_head_attention] expected ";
  EXPECT_EQ(module_error("query", tensor::Tensor({8})),
            prefix + "query of shape [len, batch, width] (or [len, width] without a batch); found [8]");
  EXPECT_EQ(module_error("query", tensor::Tensor({3, 8})),
            prefix + "key of shape [len, width], as query has no batch; found [5, 2, 8]");
  EXPECT_EQ(module_error("key", tensor::Tensor({5, 3, 8})),
            prefix + "key of shape batch 2, as query has; found [5, 3, 8]");
  EXPECT_EQ(module_error("value", tensor::Tensor({4, 2, 8})),
            prefix + "value of shape batch 2 and length 5, as key has; found [4, 2, 8]");
  EXPECT_EQ(module_error("in_proj_weight", tensor::Tensor({24, 7})),
            prefix + "in_proj_weight of shape [3 * d_model, d_model] = [24, 8]; found [24, 7]");
  EXPECT_EQ(module_error("in_proj_weight", tensor::Tensor({24, 8}), R"({"num_heads": 2, "split": "input"})"),
            prefix + "in_proj_weight of shape [3, num_heads, head_dim, head_dim] = [3, 2, 4, 4]; found [24, 8]");
  EXPECT_EQ(module_error("q_proj_weight", tensor::Tensor({8, 8})),
            prefix + "in_proj_weight alone; found in_proj_weight and q_proj_weight");
  EXPECT_EQ(module_error("key", tensor::Tensor({5, 2, 6})),
            prefix +
                "q_proj_weight, k_proj_weight and v_proj_weight where key or value are not as wide as query; found "
                "in_proj_weight");
  EXPECT_EQ(module_error("in_proj_bias", tensor::Tensor({8})),
            prefix + "in_proj_bias of shape [3 * d_model] = [24]; found [8]");
  EXPECT_EQ(module_error("out_proj.weight", tensor::Tensor({8})),
            prefix + "out_proj.weight of shape [d_model, d_model] = [8, 8]; found [8]");
  EXPECT_EQ(module_error("out_proj.bias", tensor::Tensor({9})),
            prefix + "out_proj.bias of shape [d_model] = [8]; found [9]");
  EXPECT_EQ(module_error("bias_k", tensor::Tensor({1, 1, 8})),
            prefix + "bias_k and bias_v together; found bias_k alone");
  EXPECT_EQ(module_error("bias_v", tensor::Tensor({1, 1, 8})),
            prefix + "bias_k and bias_v together; found bias_v alone");
  EXPECT_EQ(module_error("key_padding_mask", tensor::Tensor({5, 2})),
            prefix + "key_padding_mask of shape [batch, key] = [2, 5]; found [5, 2]");
  EXPECT_EQ(module_error("key_padding_mask", tensor::Tensor(DType::i64, {2, 5})),
            prefix + "key_padding_mask of type BOOL, F32, F16, BF16 or F64; found I64");
  EXPECT_EQ(module_error("attn_mask", tensor::Tensor({5, 3})),
            prefix + "attn_mask of shape [query, key] = [3, 5]; found [5, 3]");
  EXPECT_EQ(module_error("attn_mask", tensor::Tensor({2, 3, 5})),
            prefix + "attn_mask of shape [batch * num_heads, query, key] = [4, 3, 5]; found [2, 3, 5]");
  EXPECT_EQ(module_error("bias_q", tensor::Tensor({1})).substr(0, prefix.size() + 11), prefix + "an input of");
  Tensors inputs = module_inputs();
  inputs.erase("in_proj_weight");
  EXPECT_EQ(OpRun().error("multi_head_attention", inputs, R"({"num_heads": 2})"),
            prefix + "an input in_proj_weight; found none of that name in the file");
  inputs["q_proj_weight"] = tensor::Tensor({8, 8});
  inputs["k_proj_weight"] = tensor::Tensor({8, 6});
  EXPECT_EQ(OpRun().error("multi_head_attention", inputs, R"({"num_heads": 2})"),
            prefix + "k_proj_weight of shape [d_model, width of the input] = [8, 8]; found [8, 6]");
}

TEST(SoftmaxOperator, SumsToOneAlongAnyAxis) {
  Tensors inputs;
  inputs["input"] = hashed_tensor(1, {2, 3, 4}, 5.0f);
  for (int axis = -3; axis < 3; ++axis) {
    const auto output = floats(OpRun()("softmax", inputs, "{\"axis\": " + std::to_string(axis) + "}").at("output"));
    const size_t sizes[] = {2, 3, 4}, strides[] = {12, 4, 1};
    const size_t along = static_cast<size_t>(axis + (axis < 0 ? 3 : 0));
    for (size_t i = 0; i < 24; ++i) {
      const size_t first = i - i / strides[along] % sizes[along] * strides[along];
      double sum = 0, exponentials = 0;
      for (size_t k = 0; k < sizes[along]; ++k) {
        sum += output[first + k * strides[along]];
        exponentials += std::exp(inputs["input"].as<float>()[first + k * strides[along]]);
      }
      EXPECT_NEAR(sum, 1, 1e-6);
      EXPECT_NEAR(output[i], std::exp(inputs["input"].as<float>()[i]) / exponentials, 1e-6);
    }
  }
}

TEST(SoftmaxOperator, SurvivesLargeNumbersAndShowsNaN) {
  Tensors inputs;
  inputs["input"] = numbers({3, 2}, {10000, 10000, -kInfinity, -kInfinity, kNaN, 1});
  const auto output = floats(OpRun()("softmax", inputs).at("output"));
  EXPECT_EQ((std::vector<float>(output.begin(), output.begin() + 4)), (std::vector<float>{0.5f, 0.5f, 0, 0}));
  EXPECT_TRUE(std::isnan(output[4]) && std::isnan(output[5]));
  inputs["input"] = tensor::Tensor(DType::bf16, {2, 0});
  EXPECT_EQ(OpRun()("softmax", inputs).at("output").dtype(), DType::bf16);
}

TEST(SoftmaxOperator, RefusesByName) {
  Tensors inputs;
  inputs["input"] = tensor::Tensor({2, 3});
  EXPECT_EQ(OpRun().error("softmax", inputs, R"({"axis": 2})"),
            "usage: [op softmax] expected axis from -2 to 1 for input [2, 3]; found 2");
  EXPECT_EQ(OpRun().error("softmax", inputs, R"({"dim": 1})"),
            "usage: [op softmax] expected an attribute of axis; found \"dim\"");
  EXPECT_EQ(OpRun().error("softmax", {}),
            "usage: [op softmax] expected an input input; found none of that name in the file");
}

TEST(Operators, AreKnownByName) {
  EXPECT_EQ(apps::operator_names(),
            (std::vector<std::string>{"attention", "multi_head_attention", "rotary_embedding", "softmax"}));
  EXPECT_EQ(OpRun().error("atention", {}),
            "usage: [op] expected an operator of attention, multi_head_attention, rotary_embedding, softmax; found "
            "\"atention\"");
}

TEST(Operators, LeaveNoFileWhereTheInputCannotBeRead) {
  const TemporaryFolder folder;
  write_bytes(folder / "in", "garbage");
  const std::string text = error_text([&] {
    apps::run_operator({"softmax", folder / "in", folder / "out", "{}", {}});
  });
  EXPECT_NE(text, "no error");
  EXPECT_EQ(folder.entries(), 1u);
}

}  // namespace
}  // namespace clearhead::tests
