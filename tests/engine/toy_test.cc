// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/toy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "clearhead/engine/session.h"
#include "clearhead/tensor/compare.h"
#include "tests/support/error_text.h"

namespace clearhead::engine {
namespace {

using capture::Stage;
using tests::error_text;

capture::Selection everything() {
  capture::Selection selection;
  for (const capture::StageInfo& row : capture::stages()) selection.stages.push_back(row.stage);
  return selection;
}

TEST(Toy, AnybodyCanRecomputeIt) {
  const capture::Trace trace = Session::toy({}).run("The cat sat on the mat", everything());
  std::ifstream golden(std::filesystem::path(CLEARHEAD_TEST_DATA) / "toy_golden.txt");
  std::string stage;
  size_t token = 0, component = 0, lines = 0;
  double value = 0;
  while (golden >> stage >> token >> component >> value) {
    const tensor::TensorView values = trace.tensor(*capture::stage_named(stage));
    EXPECT_NEAR(values.as<float>()[token * 512 + component], value, 2e-6) << stage << token << " " << component;
    ++lines;
  }
  EXPECT_EQ(lines, 6U * (14 + 3 * 3));
}

TEST(Toy, NumbersAreStandardNormal) {
  constexpr size_t kCount = 200000;
  double sum = 0, squares = 0, cubes = 0, products = 0, before = 0;
  size_t beyond_two = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const double number = toy_normal(7, "query", i);
    sum += number;
    squares += number * number;
    cubes += number * number * number;
    products += number * before;
    beyond_two += std::abs(number) > 2;
    before = number;
  }
  const double root = 1 / std::sqrt(double{kCount});
  EXPECT_NEAR(sum / kCount, 0, 4 * root);
  EXPECT_NEAR(squares / kCount, 1, 4 * std::sqrt(2) * root);
  EXPECT_NEAR(cubes / kCount, 0, 4 * std::sqrt(15) * root);
  EXPECT_NEAR(products / kCount, 0, 4 * root);
  EXPECT_NEAR(static_cast<double>(beyond_two) / kCount, 0.0455, 4 * std::sqrt(0.0455) * root);
}

TEST(Toy, SeedAndNameChangeEveryNumber) {
  for (uint64_t index : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 42}) {
    EXPECT_NE(toy_normal(7, "query", index), toy_normal(8, "query", index));
    EXPECT_NE(toy_normal(7, "query", index), toy_normal(7, "key", index));
    EXPECT_NE(toy_normal(7, "query", index), toy_normal(7, "query", index + 1));
  }
  std::vector<float> values(3);
  fill_toy_normal(7, "key", 5, 0.25, values);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(values[i], static_cast<float>(0.25 * toy_normal(7, "key", 5 + i)));
}

TEST(Toy, AWordHasTheSameVectorInEveryPlace) {
  const capture::Trace trace = Session::toy({}).run("mat the mat", everything());
  const auto tokens = trace.tensor(Stage::token_embedding).as<float>();
  EXPECT_TRUE(std::equal(tokens.begin(), tokens.begin() + 512, tokens.begin() + 1024));
  EXPECT_FALSE(std::equal(tokens.begin(), tokens.begin() + 512, tokens.begin() + 512));
}

TEST(Toy, ShapesAreThoseOfTheTextbook) {
  const Session session = Session::toy({});
  const capture::Trace trace = session.run("The cat sat on the mat", everything());
  EXPECT_EQ(trace.tensor(Stage::embedding).shape(), (tensor::Shape{1, 6, 512}));
  EXPECT_EQ(trace.tensor(Stage::query).shape(), (tensor::Shape{1, 6, 8, 64}));
  EXPECT_EQ(trace.tensor(Stage::weights).shape(), (tensor::Shape{1, 8, 6, 6}));
  EXPECT_EQ(trace.tensor(Stage::attention_output).shape(), (tensor::Shape{1, 6, 512}));
  for (Stage absent : {Stage::token_type_embedding, Stage::feed_forward_hidden, Stage::logits, Stage::rotated_key}) {
    EXPECT_FALSE(trace.has(absent));
    EXPECT_FALSE(session.transformer().has(absent));
  }
}

// Split::input is the projection by a matrix whose squares stand on the diagonal: heads see their own cut only.
TEST(Toy, WithTheInputSplitAHeadSeesItsOwnPartOfTheInputOnly) {
  const ToyConfig config{.d_model = 24, .num_heads = 3, .seed = 5, .split = attention::Split::input};
  const Session session = Session::toy(config);
  const linear::PackedLinear& query = session.transformer().parameters().blocks[0].attention.query;
  for (size_t out = 0; out < 24; ++out) {
    for (size_t in = 0; in < 24; ++in) {
      const double expected = out / 8 == in / 8 ? toy_normal(5, "query", out * 8 + in % 8) / std::sqrt(8.0) : 0.0;
      EXPECT_EQ(query.weight_at(out, in), static_cast<float>(expected));
    }
  }
}

TEST(Toy, ATextSaysWhatItIs) {
  const ToyConfig config{
      .d_model = 96, .num_heads = 6, .seed = 18446744073709551615U, .split = attention::Split::input};
  EXPECT_EQ(config.text(), "toy d_model=96 heads=6 seed=18446744073709551615 split=input");
  EXPECT_EQ(ToyConfig::parse(config.text())->text(), config.text());
  EXPECT_EQ(ToyConfig::parse("toy")->text(), "toy d_model=512 heads=8 seed=7 split=projection");
  EXPECT_EQ(ToyConfig::parse("toy seed=3 heads=4")->text(), "toy d_model=512 heads=4 seed=3 split=projection");
  EXPECT_FALSE(ToyConfig::parse("toystory").has_value());
  EXPECT_FALSE(ToyConfig::parse("minilm").has_value());
  EXPECT_FALSE(ToyConfig::parse("").has_value());
}

struct BadToy {
  const char *text, *complaint;
};

class BadToys : public testing::TestWithParam<BadToy> {};

TEST_P(BadToys, AreRefused) {
  EXPECT_EQ(error_text([] { Session::open(GetParam().text); }), std::string("usage: [toy] ") + GetParam().complaint);
}

constexpr char kForm[] =
    "expected \"toy d_model=512 heads=8 seed=7 split=projection\", each setting at most once; found ";

INSTANTIATE_TEST_SUITE_P(
    Texts, BadToys,
    testing::Values(BadToy{"toy heads=7", "expected a number of heads that divides d_model = 512; found 7"},
                    BadToy{"toy heads=0", "expected a number of heads that divides d_model = 512; found 0"},
                    BadToy{"toy d_model=0", "expected a d_model from 1 to 4096; found 0"},
                    BadToy{"toy d_model=4104", "expected a d_model from 1 to 4096; found 4104"},
                    BadToy{"toy heads=-8", "expected heads with a whole number; found \"-8\""},
                    BadToy{"toy seed=", "expected seed with a whole number; found \"\""},
                    BadToy{"toy seed=18446744073709551616",
                           "expected seed with a whole number; found \"18446744073709551616\""},
                    BadToy{"toy heads=8x", "expected heads with a whole number; found \"8x\""},
                    BadToy{"toy split=both", "expected split to be one of: projection, input; found \"both\""}));

TEST(Toy, ASettingThatDoesNotExistOrStandsTwiceIsRefused) {
  for (const char* text : {"toy layers=2", "toy  heads=8", "toy heads=8 heads=8", "toy heads", "toy "}) {
    const std::string complaint = error_text([&] { Session::open(text); });
    EXPECT_EQ(complaint.rfind(std::string("usage: [toy] ") + kForm, 0), 0U) << text << ": " << complaint;
  }
}

}  // namespace
}  // namespace clearhead::engine
