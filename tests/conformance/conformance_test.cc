// SPDX-License-Identifier: Apache-2.0
// The published cases of the ONNX operators, on every SIMD target that this machine has.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tests/op/run_op.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using nlohmann::json;

// One operator: how many cases it has, and which attributes of ours it takes beside those of ONNX.
struct Operator {
  std::string name, onnx_name;
  size_t num_cases;
  bool takes_opset;
};

void PrintTo(const Operator& one, std::ostream* out) { *out << one.name; }

// numpy.allclose, with NaN equal to NaN.
bool is_close(double found, double wanted, double absolute, double relative) {
  if (std::isnan(wanted) || std::isinf(wanted)) return found == wanted || (std::isnan(found) && std::isnan(wanted));
  return std::abs(found - wanted) <= absolute + relative * std::abs(wanted);
}

// What is wrong with an output, or nothing.
std::string difference(const tensor::Tensor& found, const tensor::Tensor& wanted, const json& about) {
  if (found.dtype() != wanted.dtype()) return "another type";
  if (!(found.shape() == wanted.shape())) return fmt::format("shape {}", found.shape().text());
  const tensor::Tensor a = tensor::to_dtype(found, tensor::DType::f64),
                       b = tensor::to_dtype(wanted, tensor::DType::f64);
  for (size_t i = 0; i < a.elements(); ++i) {
    const double x = a.as<double>()[i], y = b.as<double>()[i];
    if (!is_close(x, y, about["atol"], about["rtol"])) return fmt::format("{} instead of {} at {}", x, y, i);
  }
  return {};
}

class Conformance : public testing::TestWithParam<Operator> {
 protected:
  Conformance()
      : file_(format::SafetensorsFile::open(std::string(CLEARHEAD_TEST_DATA) + "/" + GetParam().name + ".safetensors")),
        cases_(json::parse(file_.metadata().at("cases"))) {}

  tensor::Tensor tensor_of(const json& about, const std::string& name) const {
    return tensor::clone(file_.view(about["name"].get<std::string>() + "/" + name));
  }

  // With further attributes if any are given; outputs as near as tolerances say.
  bool passes(const json& about, const json& more, const json& tolerances) const {
    Tensors inputs;
    for (const std::string name : about["inputs"]) inputs[name] = tensor_of(about, "in." + name);
    json attributes = about["attributes"];
    attributes.update(more);
    if (GetParam().takes_opset) attributes["opset"] = about["opset"];
    const auto outputs =
        OpRun()(GetParam().name, inputs, attributes.dump(), about["outputs"].get<std::vector<std::string>>());
    bool passed = true;
    for (const std::string name : about["outputs"]) {
      const std::string wrong = difference(outputs.at(name), tensor_of(about, "out." + name), tolerances);
      EXPECT_EQ(wrong, "") << about["name"] << " " << name;
      passed = passed && wrong.empty();
    }
    return passed;
  }

  format::SafetensorsFile file_;
  json cases_;
};

TEST_P(Conformance, EveryPublishedCaseOnEveryTarget) {
  ASSERT_EQ(cases_.size(), GetParam().num_cases);
  std::vector<std::string> targets;
  for_each_target([&](const std::string& target) {
    size_t passed = 0;
    for (const json& about : cases_) passed += passes(about, json::object(), about) ? 1 : 0;
    EXPECT_EQ(passed, cases_.size());
    if (passed == cases_.size()) targets.push_back(target);
  });
  std::cout << fmt::format("ONNX {}: {} of {} on {}\n", GetParam().onnx_name, cases_.size(), GetParam().num_cases,
                           fmt::join(targets, ", "));
  EXPECT_EQ(targets, base::simd_targets());
}

class ConformanceInBFloat16 : public Conformance {};

// A rounding of each operand and of each weight: 3 times 2^-9 of numbers below 1, scores a little more.
TEST_P(ConformanceInBFloat16, EveryPublishedCaseThatIsNotInDouble) {
  size_t ran = 0;
  for_each_target([&](const std::string&) {
    for (const json& about : cases_) {
      if (about["attributes"].value("softmax_precision", 1) == 11) continue;
      EXPECT_TRUE(passes(about, {{"precision", "bfloat16"}}, {{"atol", 0.01}, {"rtol", 0.01}}));
      ++ran;
    }
  });
  EXPECT_GE(ran, 80 * base::simd_targets().size());
}

INSTANTIATE_TEST_SUITE_P(Onnx, ConformanceInBFloat16, testing::Values(Operator{"attention", "Attention", 93, true}),
                         [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(Onnx, Conformance,
                         testing::Values(Operator{"attention", "Attention", 93, true},
                                         Operator{"rotary_embedding", "RotaryEmbedding", 8, false},
                                         Operator{"softmax", "Softmax", 7, false}),
                         [](const auto& test) { return test.param.name; });

// A comparison that lets everything through would make the count worth nothing.
TEST(Comparison, SeesADifferenceJustOverTheTolerance) {
  EXPECT_TRUE(is_close(1.0009, 1.0, 1e-7, 1e-3));
  EXPECT_FALSE(is_close(1.0011, 1.0, 1e-7, 1e-3));
  EXPECT_FALSE(is_close(NAN, 1.0, 1e-7, 1e-3));
  EXPECT_TRUE(is_close(NAN, NAN, 0, 0));
  EXPECT_TRUE(is_close(-INFINITY, -INFINITY, 0, 0));
  EXPECT_FALSE(is_close(INFINITY, -INFINITY, 1, 1));
  const json about = {{"atol", 0.0}, {"rtol", 0.0}};
  EXPECT_EQ(difference(numbers({2}, {1, 2}), numbers({2}, {1, 3}), about), "2 instead of 3 at 1");
  EXPECT_EQ(difference(numbers({1, 2}, {1, 2}), numbers({2}, {1, 2}), about), "shape [1, 2]");
  EXPECT_EQ(difference(tensor::Tensor(tensor::DType::f64, {1}), numbers({1}, {0}), about), "another type");
}

}  // namespace
}  // namespace clearhead::tests
