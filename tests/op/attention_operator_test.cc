// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "run_op.h"

namespace clearhead::tests {
namespace {

using tensor::DType;
using tensor::Shape;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// One head of dimension 1, scores all 0: every visible key weighs the same.
Tensors equal_scores(size_t query_len, const std::vector<float>& values) {
  Tensors inputs;
  inputs["Q"] = tensor::Tensor({1, 1, query_len, 1});
  inputs["K"] = tensor::Tensor({1, 1, values.size(), 1});
  inputs["V"] = numbers({1, 1, values.size(), 1}, values);
  return inputs;
}

Tensors small() {
  Tensors inputs;
  inputs["Q"] = hashed_tensor(1, {2, 4, 3, 8});
  inputs["K"] = hashed_tensor(2, {2, 2, 5, 8});
  inputs["V"] = hashed_tensor(3, {2, 2, 5, 6});
  return inputs;
}

TEST(AttentionOperator, WritesOutputRowReferenceAndRowSumByDefault) {
  const Tensors outputs = OpRun()("attention", small());
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs.at("Y").shape(), Shape({2, 4, 3, 6}));
  EXPECT_EQ(outputs.at("row_reference").shape(), Shape({2, 4, 3}));
  EXPECT_EQ(outputs.at("row_sum").shape(), Shape({2, 4, 3}));
  const Tensors only = OpRun()("attention", small(), "{}", {"row_sum"});
  ASSERT_EQ(only.size(), 1u);
  EXPECT_TRUE(tensor::same_bits(only.at("row_sum"), outputs.at("row_sum")));
}

TEST(AttentionOperator, TakesThreeAxesWithHeadCounts) {
  const Tensors by_head = small();
  Tensors flat;
  const auto transpose = [](const tensor::Tensor& values) {
    const Shape& shape = values.shape();
    tensor::Tensor result({shape[0], shape[2], shape[1] * shape[3]});
    for (size_t i = 0; i < values.elements(); ++i) {
      const size_t d = i % shape[3], len = i / shape[3] % shape[2], head = i / shape[3] / shape[2] % shape[1];
      const size_t batch = i / (shape[1] * shape[2] * shape[3]);
      result.as<float>()[((batch * shape[2] + len) * shape[1] + head) * shape[3] + d] = values.as<float>()[i];
    }
    return result;
  };
  for (const auto& [name, values] : by_head) flat[name] = transpose(values);
  const Tensors outputs = OpRun()("attention", flat, R"({"q_num_heads": 4, "kv_num_heads": 2})");
  EXPECT_TRUE(tensor::same_bits(outputs.at("Y"), transpose(OpRun()("attention", by_head).at("Y"))));
}

TEST(AttentionOperator, AlignsTheCausalMaskTopLeftAndReadsTrueAsMayAttend) {
  Tensors inputs = equal_scores(2, {1, 2, 3, 4, 5});
  EXPECT_EQ(floats(OpRun()("attention", inputs, R"({"is_causal": 1})").at("Y")), (std::vector<float>{1, 1.5f}));
  inputs["attn_mask"] = truths({1, 5}, {false, true, true, false, false});
  EXPECT_EQ(floats(OpRun()("attention", inputs).at("Y")), (std::vector<float>{2.5f, 2.5f}));
  EXPECT_EQ(floats(OpRun()("attention", inputs, R"({"is_causal": true})").at("Y")), (std::vector<float>{0, 2}));
}

TEST(AttentionOperator, FillsUpAShortMaskFromOpset24OnAndBroadcastsBefore) {
  Tensors inputs = equal_scores(1, {1, 2, 6});
  inputs["attn_mask"] = truths({2}, {true, true});
  EXPECT_EQ(floats(OpRun()("attention", inputs).at("Y")), std::vector<float>{1.5f});
  EXPECT_EQ(OpRun().error("attention", inputs, R"({"opset": 23})"),
            "usage: [op attention] expected attn_mask of shape that broadcasts to [1, 1, 1, 3]; found [2]");
  inputs["attn_mask"] = numbers({1, 2}, {0, 0});
  EXPECT_EQ(floats(OpRun()("attention", inputs, R"({"opset": 24})").at("Y")), std::vector<float>{1.5f});
  inputs["attn_mask"] = truths({1}, {true});
  EXPECT_EQ(floats(OpRun()("attention", inputs, R"({"opset": 23})").at("Y")), std::vector<float>{3});
}

TEST(AttentionOperator, ShowsScoresInEveryMode) {
  Tensors inputs = equal_scores(1, {5, 7});
  inputs["Q"] = numbers({1, 1, 1, 1}, {2});
  inputs["K"] = numbers({1, 1, 2, 1}, {3, 4});
  inputs["attn_mask"] = numbers({1, 2}, {-kInfinity, 1});
  const auto shown = [&](const std::string& mode) {
    return floats(OpRun()("attention", inputs, R"({"scale": 0.5, "qk_matmul_output_mode": )" + mode + "}")
                      .at("qk_matmul_output"));
  };
  EXPECT_EQ(shown("0"), (std::vector<float>{3, 4}));
  EXPECT_EQ(shown("1"), (std::vector<float>{3, 4}));
  EXPECT_EQ(shown("2"), (std::vector<float>{-kInfinity, 5}));
  EXPECT_EQ(shown("3"), (std::vector<float>{0, 1}));
}

TEST(AttentionOperator, ComputesEveryTypeAndAnswersInTheTypeOfTheFirstInput) {
  const Tensors plain = small();
  const std::vector<float> want = floats(OpRun()("attention", plain).at("Y"));
  for (const auto& [dtype, tolerance] : {std::pair(DType::f64, 1e-6), {DType::f16, 2e-3}, {DType::bf16, 1.5e-2}}) {
    Tensors inputs;
    for (const auto& [name, values] : plain) inputs[name] = tensor::to_dtype(values, dtype);
    const Tensors outputs = OpRun()("attention", inputs, R"({"qk_matmul_output_mode": 3})");
    EXPECT_EQ(outputs.at("Y").dtype(), dtype);
    EXPECT_EQ(outputs.at("qk_matmul_output").dtype(), dtype);
    EXPECT_EQ(outputs.at("row_sum").dtype(), dtype == DType::f64 ? DType::f64 : DType::f32);
    const std::vector<float> got = floats(outputs.at("Y"));
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance);
  }
}

TEST(AttentionOperator, GivesDoublePrecisionForDoubles) {
  Tensors inputs;
  for (const auto& [name, values] : equal_scores(1, {0, 0, 0})) inputs[name] = tensor::to_dtype(values, DType::f64);
  inputs["V"].as<double>()[0] = 1;
  EXPECT_EQ(OpRun()("attention", inputs).at("Y").as<double>()[0], 1.0 / 3.0);
  inputs["Q"].as<double>()[0] = 1;
  const Tensors scaled = OpRun()("attention", inputs, R"({"qk_matmul_output_mode": 0, "scale": 2})");
  EXPECT_EQ(scaled.at("qk_matmul_output").as<double>()[0], 0.0);
}

TEST(AttentionOperator, TakesEmptyTensors) {
  Tensors inputs = equal_scores(0, {1, 2});
  EXPECT_EQ(OpRun()("attention", inputs).at("Y").shape(), Shape({1, 1, 0, 1}));
  inputs = equal_scores(2, {});
  EXPECT_EQ(floats(OpRun()("attention", inputs).at("Y")), (std::vector<float>{0, 0}));
}

TEST(AttentionOperator, PutsThePastBeforeTheNewKeys) {
  Tensors inputs = equal_scores(2, {4, 5});
  inputs["past_key"] = tensor::Tensor({1, 1, 3, 1});
  inputs["past_value"] = numbers({1, 1, 3, 1}, {1, 2, 3});
  const Tensors outputs = OpRun()("attention", inputs, R"({"is_causal": 1})");
  EXPECT_EQ(floats(outputs.at("Y")), (std::vector<float>{2.5f, 3}));
  EXPECT_EQ(floats(outputs.at("present_value")), (std::vector<float>{1, 2, 3, 4, 5}));
  EXPECT_EQ(outputs.at("present_key").shape(), Shape({1, 1, 5, 1}));
  const Tensors last = OpRun()("attention", inputs, R"({"left_window_size": 1, "right_window_size": 0})");
  EXPECT_EQ(floats(last.at("Y")), (std::vector<float>{3.5f, 4.5f}));
}

TEST(AttentionOperator, DecodesByPastWithTheBitsOfOneFullPass) {
  const size_t len = 300, past = 280;
  Tensors whole, step;
  for (const auto& [name, heads, seed] : {std::tuple("Q", 4, 1), {"K", 2, 2}, {"V", 2, 3}}) {
    whole[name] = hashed_tensor(static_cast<uint64_t>(seed), {1, static_cast<size_t>(heads), len, 8}, 2);
  }
  const auto part = [&](const std::string& name, size_t first, size_t count) {
    const tensor::Tensor& all = whole.at(name);
    const size_t heads = all.shape()[1];
    tensor::Tensor result({1, heads, count, 8});
    for (size_t head = 0; head < heads; ++head) {
      std::ranges::copy(all.as<float>().subspan((head * len + first) * 8, count * 8),
                        result.as<float>().subspan(head * count * 8).begin());
    }
    return result;
  };
  for (const char* name : {"Q", "K", "V"}) step[name] = part(name, past, len - past);
  step["past_key"] = part("K", 0, past);
  step["past_value"] = part("V", 0, past);
  const std::string attributes = R"({"is_causal": 1, "softcap": 3, "left_window_size": 270})";
  whole["Y"] = tensor::clone(OpRun()("attention", whole, attributes).at("Y"));
  const Tensors outputs = OpRun()("attention", step, attributes);
  EXPECT_TRUE(tensor::same_bits(outputs.at("Y"), part("Y", past, len - past)));
  EXPECT_TRUE(tensor::same_bits(outputs.at("present_key"), whole.at("K")));
  EXPECT_TRUE(tensor::same_bits(outputs.at("present_value"), whole.at("V")));
}

TEST(AttentionOperator, LeavesOutWhatIsBehindTheValidLength) {
  Tensors inputs = equal_scores(1, {1, 2, 6});
  inputs["V"].as<float>()[2] = std::numeric_limits<float>::quiet_NaN();
  inputs["K"].as<float>()[2] = std::numeric_limits<float>::quiet_NaN();
  inputs["nonpad_kv_seqlen"] = tensor::Tensor(DType::i64, {1});
  inputs["nonpad_kv_seqlen"].as<int64_t>()[0] = 2;
  for (const char* attributes : {"{}", R"({"is_causal": 1})"}) {
    EXPECT_EQ(floats(OpRun()("attention", inputs, attributes).at("Y")), std::vector<float>{1.5f});
  }
  const auto scores = [&](const std::string& mode) {
    return floats(OpRun()("attention", inputs, R"({"qk_matmul_output_mode": )" + mode + "}").at("qk_matmul_output"));
  };
  EXPECT_TRUE(std::isnan(scores("0")[2]));  // the product itself, whatever may be seen
  EXPECT_EQ(scores("2"), (std::vector<float>{0, 0, -kInfinity}));
  EXPECT_EQ(scores("3"), (std::vector<float>{0.5f, 0.5f, 0}));
}

TEST(AttentionOperator, CapsScoresBeforeTheMask) {
  Tensors inputs = equal_scores(1, {5, 7});
  inputs["Q"] = numbers({1, 1, 1, 1}, {2});
  inputs["K"] = numbers({1, 1, 2, 1}, {3, 100});
  inputs["attn_mask"] = numbers({1, 2}, {1, -kInfinity});
  const auto shown = [&](const std::string& mode) {
    return floats(OpRun()("attention", inputs, R"({"scale": 1, "softcap": 4, "qk_matmul_output_mode": )" + mode + "}")
                      .at("qk_matmul_output"));
  };
  const float capped = static_cast<float>(4 * std::tanh(1.5));
  EXPECT_EQ(shown("0"), (std::vector<float>{6, 200}));
  EXPECT_EQ(shown("1"), (std::vector<float>{capped, 4}));
  EXPECT_NEAR(shown("2")[0], capped + 1, 1e-6);
  EXPECT_EQ(shown("2")[1], -kInfinity);
  EXPECT_EQ(shown("3"), (std::vector<float>{1, 0}));
}

TEST(AttentionOperator, ComputesTheSoftmaxInDoubleIfAsked) {
  Tensors inputs = small();
  Tensors doubles;
  for (const auto& [name, values] : inputs) doubles[name] = tensor::to_dtype(values, DType::f64);
  const Tensors exact = OpRun()("attention", doubles, "{}"),
                rounded = OpRun()("attention", inputs, R"({"softmax_precision": 11})");
  EXPECT_EQ(rounded.at("Y").dtype(), DType::f32);
  EXPECT_EQ(rounded.at("row_sum").dtype(), DType::f32);
  EXPECT_TRUE(tensor::same_bits(rounded.at("Y"), tensor::to_dtype(exact.at("Y"), DType::f32)));
  const Tensors plain = OpRun()("attention", inputs);
  for (const char* type : {"1", "10", "16"}) {
    EXPECT_TRUE(tensor::same_bits(
        OpRun()("attention", inputs, std::string(R"({"softmax_precision": )") + type + "}").at("Y"), plain.at("Y")));
  }
}

TEST(AttentionOperator, ComputesProductsInBFloat16IfAsked) {
  const Tensors plain = small();
  Tensors rounded;
  for (const auto& [name, values] : plain) rounded[name] = tensor::to_dtype(values, DType::bf16);
  const std::vector<std::string> names = {"Y", "row_sum", "qk_matmul_output"};
  const std::string asked = R"({"precision": "bfloat16", "qk_matmul_output_mode": 3})";
  const Tensors found = OpRun()("attention", plain, asked, names);
  const Tensors exact = OpRun()("attention", plain, R"({"precision": "float", "qk_matmul_output_mode": 3})", names);
  const Tensors of_rounded = OpRun()("attention", rounded, asked, names);
  for (size_t i = 0; i < found.at("Y").elements(); ++i) {
    EXPECT_NEAR(floats(found.at("Y"))[i], floats(exact.at("Y"))[i], 1e-2);
  }
  EXPECT_FALSE(tensor::same_bits(found.at("Y"), exact.at("Y")));
  EXPECT_TRUE(tensor::same_bits(found.at("row_sum"), of_rounded.at("row_sum")));
  const std::vector<float> weights = floats(found.at("qk_matmul_output"));
  EXPECT_NEAR(weights[0] + weights[1] + weights[2] + weights[3] + weights[4], 1.0f, 1e-6f);
  EXPECT_EQ(OpRun().error("attention", plain, R"({"precision": "half"})"),
            "usage: [op attention] expected attribute precision of float or bfloat16; found \"half\"");
  EXPECT_EQ(OpRun().error("attention", plain, R"({"precision": "bfloat16", "softmax_precision": 11})"),
            "usage: [op attention] expected attribute precision of float beside F64 or softmax_precision 11 (double); "
            "found bfloat16");
}

TEST(AttentionOperator, GivesNarrowInputsTheBitsOfTheirFloats) {
  for (DType dtype : {DType::f16, DType::bf16}) {
    Tensors narrow, wide, mixed;
    for (const auto& [name, values] : small()) {
      narrow[name] = tensor::to_dtype(values, dtype);
      wide[name] = tensor::to_dtype(narrow[name], DType::f32);
    }
    for (const auto& [name, seed] : {std::pair("past_key", 8), {"past_value", 6}}) {
      narrow[name] = tensor::to_dtype(hashed_tensor(9, {2, 2, 4, static_cast<size_t>(seed)}), dtype);
      wide[name] = tensor::to_dtype(narrow[name], DType::f32);
    }
    for (const auto& [name, values] : narrow) {
      mixed[name] = name == "past_key" || name == "V" ? tensor::clone(wide[name]) : tensor::clone(values);
    }
    const std::vector<std::string> names = {"row_reference", "row_sum", "present_key", "present_value"};
    const Tensors want = OpRun()("attention", wide, "{}", names), found = OpRun()("attention", narrow, "{}", names);
    const Tensors found_mixed = OpRun()("attention", mixed, "{}", names);
    for (const std::string& name : names) {
      EXPECT_EQ(floats(found.at(name)), floats(want.at(name))) << name;
      EXPECT_EQ(floats(found_mixed.at(name)), floats(want.at(name))) << name;
    }
    const auto y = [](const Tensors& inputs) { return tensor::clone(OpRun()("attention", inputs).at("Y")); };
    EXPECT_TRUE(tensor::same_bits(y(narrow), tensor::to_dtype(y(wide), dtype)));
    EXPECT_TRUE(tensor::same_bits(y(mixed), tensor::to_dtype(y(wide), dtype)));
  }
}

TEST(AttentionOperator, RefusesWhatTheOpsetDoesNotHave) {
  const std::string prefix = "usage: [op attention] expected ";
  for (const char* name : {"left_window_size", "right_window_size"}) {
    EXPECT_EQ(OpRun().error("attention", small(), std::string("{\"opset\": 24, \"") + name + "\": 1}"),
              prefix + "attribute " + name + " from opset 25 on; found opset 24");
  }
  Tensors inputs = small();
  inputs["nonpad_kv_seqlen"] = tensor::Tensor(DType::i64, {2});
  EXPECT_EQ(OpRun().error("attention", inputs, R"({"opset": 23})"),
            prefix + "nonpad_kv_seqlen from opset 24 on; found opset 23");
}

TEST(AttentionOperator, ChecksThePastAndTheLengths) {
  const std::string prefix = "usage: [op attention] expected ";
  Tensors inputs = small();
  inputs["past_key"] = tensor::Tensor({2, 2, 4, 8});
  EXPECT_EQ(OpRun().error("attention", inputs), prefix + "past_key and past_value together; found only past_key");
  inputs["past_value"] = tensor::Tensor({2, 2, 3, 6});
  EXPECT_EQ(OpRun().error("attention", inputs),
            prefix + "past_value of shape [batch, kv heads, past, value dim] = [2, 2, 4, 6]; found [2, 2, 3, 6]");
  inputs["past_key"] = tensor::Tensor({2, 4, 8});
  EXPECT_EQ(OpRun().error("attention", inputs), prefix + "past_key of shape [batch, heads, len, dim]; found [2, 4, 8]");
  inputs["past_key"] = tensor::Tensor({2, 2, 3, 8});
  inputs["nonpad_kv_seqlen"] = tensor::Tensor(DType::i64, {2});
  EXPECT_EQ(OpRun().error("attention", inputs), prefix + "nonpad_kv_seqlen or past_key and past_value; found both");
  inputs.erase("past_key");
  inputs.erase("past_value");
  EXPECT_EQ(OpRun().error("attention", inputs, "{}", {"present_key"}),
            prefix + "no present_key or present_value beside nonpad_kv_seqlen; found both");
  inputs["nonpad_kv_seqlen"].as<int64_t>()[1] = 6;
  EXPECT_EQ(OpRun().error("attention", inputs),
            prefix + "nonpad_kv_seqlen from 0 to 5, the length of K; found 6 in row 1");
  inputs["nonpad_kv_seqlen"].as<int64_t>()[1] = -1;
  EXPECT_EQ(OpRun().error("attention", inputs),
            prefix + "nonpad_kv_seqlen from 0 to 5, the length of K; found -1 in row 1");
  inputs["nonpad_kv_seqlen"] = tensor::Tensor(DType::i64, {3});
  EXPECT_EQ(OpRun().error("attention", inputs), prefix + "nonpad_kv_seqlen of shape [batch] = [2]; found [3]");
  inputs["nonpad_kv_seqlen"] = tensor::Tensor({2});
  EXPECT_EQ(OpRun().error("attention", inputs), prefix + "nonpad_kv_seqlen of type I64; found F32");
}

TEST(AttentionOperator, ChecksEveryAttribute) {
  const auto error = [](const std::string& attributes) { return OpRun().error("attention", small(), attributes); };
  const std::string prefix = "usage: [op attention] expected attribute ";
  EXPECT_EQ(error(R"({"is_causal": 2})"), prefix + "is_causal to be true, false, 0 or 1; found 2");
  EXPECT_EQ(error(R"({"scale": "x"})"), prefix + "scale to be a number that a float can hold; found \"x\"");
  EXPECT_EQ(error(R"({"scale": 1e39})"), prefix + "scale to be a number that a float can hold; found 1e+39");
  EXPECT_EQ(error(R"({"q_num_heads": 0})"), prefix + "q_num_heads to be at least 1; found 0");
  EXPECT_EQ(error(R"({"q_num_heads": 1.5})"), prefix + "q_num_heads to be an integer; found 1.5");
  EXPECT_EQ(error(R"({"kv_num_heads": []})"),
            prefix + "kv_num_heads to be an integer; found null, a list or an object");
  EXPECT_EQ(error(R"({"qk_matmul_output_mode": 4})"), prefix + "qk_matmul_output_mode from 0 to 3; found 4");
  EXPECT_EQ(error(R"({"opset": 22})"), prefix + "opset from 23 to 25; found 22");
  EXPECT_EQ(error(R"({"softcap": -1})"), prefix + "softcap to be 0 (none) or more; found -1");
  EXPECT_EQ(error(R"({"left_window_size": -2})"),
            prefix + "left_window_size to be -1 (all) or the number of keys; found -2");
  EXPECT_EQ(error(R"({"softmax_precision": 7})"),
            prefix + "softmax_precision of 1 (float), 10 (float16), 11 (double), 16 (bfloat16); found 7");
  EXPECT_EQ(error(R"({"is_casual": 1})"),
            "usage: [op attention] expected an attribute of is_causal, kv_num_heads, left_window_size, map_keys, "
            "map_queries, opset, precision, "
            "q_num_heads, qk_matmul_output_mode, right_window_size, scale, softcap, softmax_precision, top_k; found "
            "\"is_casual\"");
  EXPECT_EQ(error(R"({"q_num_heads": 4, "kv_num_heads": 2})"),
            "usage: [op attention] expected no head counts beside 4D inputs, which have them; found attribute "
            "q_num_heads");
  EXPECT_EQ(error(R"({"opset": 23, "q_num_heads": 3})"),
            "usage: [op attention] expected Q of shape [batch, q_num_heads = 3, len, dim]; found [2, 4, 3, 8]");
  const std::string object = "usage: [op attention] expected attributes as one JSON object; found ";
  EXPECT_EQ(error("[1]"), object + "\"[1]\"");
  EXPECT_EQ(error("{"), object + "\"{\"");
  EXPECT_EQ(error(R"({"scale": 1, "scale": 2})"), object + "\"scale\" twice");
}

TEST(AttentionOperator, ChecksEveryInput) {
  const auto error = [](const char* name, tensor::Tensor changed, const std::string& attributes = "{}") {
    Tensors inputs = small();
    inputs[name] = std::move(changed);
    return OpRun().error("attention", inputs, attributes);
  };
  const std::string prefix = "usage: [op attention] expected ";
  EXPECT_EQ(error("Q", tensor::Tensor(DType::i64, {2, 4, 3, 8})),
            prefix + "Q of type F32, F16, BF16 or F64; found I64");
  EXPECT_EQ(error("Q", tensor::Tensor({4, 3})),
            prefix + "Q of shape [batch, heads, len, dim] or [batch, len, heads * dim]; found [4, 3]");
  EXPECT_EQ(error("Q", tensor::Tensor({2, 3, 32})), prefix + "attribute q_num_heads beside 3D inputs; found none");
  EXPECT_EQ(error("Q", tensor::Tensor({2, 3, 32}), R"({"q_num_heads": 5})"),
            prefix + "Q of shape [batch, len, a multiple of q_num_heads = 5]; found [2, 3, 32]");
  EXPECT_EQ(error("K", tensor::Tensor({2, 5, 16}), R"({"opset": 23, "kv_num_heads": 2})"),
            prefix + "K of shape 4 axes, as Q has; found [2, 5, 16]");
  EXPECT_EQ(error("K", tensor::Tensor({2, 2, 5, 7})),
            prefix + "K of shape batch 2 and head size 8, as Q has; found [2, 2, 5, 7]");
  EXPECT_EQ(error("V", tensor::Tensor({2, 2, 4, 6})),
            prefix + "V of shape batch 2, 2 heads and length 5, as K has; found [2, 2, 4, 6]");
  EXPECT_EQ(error("Q", tensor::Tensor({2, 3, 3, 8})),
            "usage: [attention] expected num_heads to be a multiple of num_kv_heads; found 3 heads and 2 kv heads");
  EXPECT_EQ(error("Q", tensor::Tensor({2, 0, 3, 8})), "usage: [attention] expected at least 1 for num_heads; found 0");
  EXPECT_EQ(error("attn_mask", tensor::Tensor(DType::i64, {3, 5})),
            prefix + "attn_mask of type BOOL, F32, F16, BF16 or F64; found I64");
  EXPECT_EQ(error("attn_mask", tensor::Tensor({4, 5})),
            prefix + "attn_mask of shape that broadcasts to [2, 4, 3, 5]; found [4, 5]");
  EXPECT_EQ(error("attn_mask", tensor::Tensor({1, 1, 1, 3, 5})),
            prefix + "attn_mask of shape that broadcasts to [2, 4, 3, 5]; found [1, 1, 1, 3, 5]");
  EXPECT_EQ(
      error("extra", tensor::Tensor({1})),
      prefix + "an input of K, Q, V, attn_mask, key_groups, nonpad_kv_seqlen, past_key, past_value; found \"extra\"");
  EXPECT_EQ(OpRun().error("attention", small(), "{}", {"Z"}),
            prefix +
                "an output of Y, row_reference, row_sum, present_key, present_value, qk_matmul_output, entropy, "
                "distance, top_weights, top_keys, group_mass, map_sum, map_maximum, received; found \"Z\"");
  Tensors inputs = small();
  inputs.erase("V");
  EXPECT_EQ(OpRun().error("attention", inputs), prefix + "an input V; found none of that name in the file");
}

}  // namespace
}  // namespace clearhead::tests
