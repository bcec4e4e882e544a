// SPDX-License-Identifier: Apache-2.0
// The operators against PyTorch: the cases of golden/make_golden.py.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "run_op.h"

namespace clearhead::tests {
namespace {

using nlohmann::json;

// The promise towards PyTorch: |ours - theirs| <= 2e-6 + 1e-5 |theirs|.
constexpr double kAbsolute = 2e-6, kRelative = 1e-5;

Tensors inputs_of(const format::SafetensorsFile& file) {
  Tensors inputs;
  const json generated = json::parse(file.metadata().at("generated"));
  for (const auto& [name, recipe] : generated.items()) {
    tensor::Shape shape(recipe["shape"].get<std::vector<size_t>>());
    inputs[name] = hashed_tensor(recipe["seed"].get<uint64_t>(), std::move(shape), recipe["factor"].get<float>());
  }
  for (const auto& entry : file.entries()) {
    if (entry.name.starts_with("in.")) inputs[entry.name.substr(3)] = tensor::clone(file.view(entry.name));
  }
  return inputs;
}

void expect_close(const tensor::Tensor& ours, const format::SafetensorsFile& file, const std::string& name) {
  const tensor::Tensor theirs = tensor::clone(file.view("out." + name));
  const std::string places = "places." + name;
  if (!file.contains(places)) {
    ASSERT_EQ(ours.shape(), theirs.shape());
  }
  const std::vector<float> all = floats(ours), want = floats(theirs);
  for (size_t i = 0; i < want.size(); ++i) {
    const size_t at =
        file.contains(places) ? static_cast<size_t>(tensor::clone(file.view(places)).as<int64_t>()[i]) : i;
    ASSERT_LT(at, all.size());
    ASSERT_LE(std::abs(all[at] - want[i]), kAbsolute + kRelative * std::abs(want[i])) << name << " at " << at;
  }
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, AgreesWithPyTorch) {
  const auto file = format::SafetensorsFile::open(std::string(CLEARHEAD_TEST_DATA) + "/" + GetParam() + ".safetensors");
  const Tensors outputs = OpRun()(file.metadata().at("operator"), inputs_of(file), file.metadata().at("attributes"));
  size_t compared = 0;
  for (const auto& entry : file.entries()) {
    if (!entry.name.starts_with("out.")) continue;
    expect_close(outputs.at(entry.name.substr(4)), file, entry.name.substr(4));
    ++compared;
  }
  EXPECT_GT(compared, 0u);
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(CLEARHEAD_TEST_DATA)) {
    if (entry.path().extension() == ".safetensors") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(PyTorch, Golden, testing::ValuesIn(cases()), [](const auto& test) { return test.param; });

// The shape that the textbook begins with must be among them.
TEST(Goldens, HaveTheSeedShape) {
  const auto file =
      format::SafetensorsFile::open(std::string(CLEARHEAD_TEST_DATA) + "/module_seed_64_by_512.safetensors");
  EXPECT_EQ(inputs_of(file).at("query").shape(), tensor::Shape({64, 512}));
  EXPECT_GE(cases().size(), 40u);
}

}  // namespace
}  // namespace clearhead::tests
