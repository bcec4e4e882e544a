// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/mask.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "clearhead/attention/config.h"
#include "tests/support/error_text.h"

namespace clearhead::tests {
namespace {

using attention::Mask;
using tensor::DType;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Row {
  std::vector<uint8_t> visible;
  std::vector<float> bias;
};

Row read(const Mask& mask, std::array<size_t, 3> place, size_t first, size_t count) {
  Row row{std::vector<uint8_t>(count, 7), std::vector<float>(count, 7)};
  mask.read_row(place, first, row.visible, row.bias);
  return row;
}

tensor::Tensor numbers(DType dtype, tensor::Shape shape) {
  tensor::Tensor values(std::move(shape));
  for (size_t i = 0; i < values.elements(); ++i) values.as<float>()[i] = static_cast<float>(i) / 4;
  return tensor::to_dtype(values, dtype);
}

TEST(Mask, ReadsEveryFloatingTypeAndBroadcastsAxesOfOne) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    SCOPED_TRACE(tensor::name_of(dtype));
    const tensor::Tensor values = numbers(dtype, {2, 1, 3, 4});
    const Mask mask(values, {2, 5, 3, 4});
    const Row row = read(mask, {1, 4, 2}, 1, 3);
    EXPECT_EQ(row.visible, (std::vector<uint8_t>{1, 1, 1}));
    EXPECT_EQ(row.bias, (std::vector<float>{21 / 4.0f, 22 / 4.0f, 23 / 4.0f}));
    EXPECT_FALSE(mask.boolean());
  }
  const tensor::Tensor one = numbers(DType::f32, {1, 1, 2, 1});
  EXPECT_EQ(read(Mask(one, {2, 2, 2, 3}), {1, 1, 1}, 0, 3).bias, (std::vector<float>{0.25f, 0.25f, 0.25f}));
}

TEST(Mask, TakesMinusTenToTheThirtyAndBelowForForbidden) {
  tensor::Tensor values({1, 1, 1, 5});
  const std::vector<float> biases = {-1e30f, -9e29f, -kInfinity, std::numeric_limits<float>::lowest(), 1e30f};
  std::copy(biases.begin(), biases.end(), values.as<float>().begin());
  const Row row = read(Mask(values, {1, 1, 1, 5}), {0, 0, 0}, 0, 5);
  EXPECT_EQ(row.visible, (std::vector<uint8_t>{0, 1, 0, 0, 1}));
  EXPECT_EQ(row.bias, (std::vector<float>{0, -9e29f, 0, 0, 1e30f}));
}

TEST(Mask, TakesWhatIsNotZeroInABooleanForMayAttend) {
  tensor::Tensor values(DType::u8, {1, 1, 1, 3});
  values.as<uint8_t>()[1] = 1;
  values.as<uint8_t>()[2] = 200;
  const Mask mask(values, {1, 2, 1, 3});
  const Row row = read(mask, {0, 1, 0}, 0, 3);
  EXPECT_EQ(row.visible, (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ(row.bias, (std::vector<float>{0, 0, 0}));
  EXPECT_TRUE(mask.boolean());
  EXPECT_FALSE(Mask().present());
}

TEST(Mask, ReadsValuesThatAreNotAligned) {
  std::vector<std::byte> bytes(1 + 3 * sizeof(float));
  const float values[3] = {1.5f, -2.0f, 0.25f};
  std::memcpy(bytes.data() + 1, values, sizeof values);
  const Mask mask(tensor::TensorView(DType::f32, {1, 1, 1, 3}, std::span(bytes).subspan(1)), {1, 1, 1, 3});
  EXPECT_EQ(read(mask, {0, 0, 0}, 0, 3).bias, (std::vector<float>{1.5f, -2.0f, 0.25f}));
}

TEST(Mask, KeepsDoublesForWhoComputesInDouble) {
  tensor::Tensor values(DType::f64, {1, 1, 1, 1});
  values.as<double>()[0] = 0.1;
  uint8_t visible;
  double bias;
  Mask(values, {1, 1, 1, 1}).read_row({0, 0, 0}, 0, std::span(&visible, 1), std::span(&bias, 1));
  EXPECT_EQ(bias, 0.1);
}

TEST(Mask, RefusesIntegers) {
  const tensor::Tensor values(DType::i64, {1, 1, 1, 1});
  EXPECT_EQ(error_text([&] {
              Mask(values, {1, 1, 1, 1});
            }),
            "usage: [attention mask] expected BOOL, U8 or a floating type; found I64");
}

TEST(AttentionConfig, SaysItselfAsJson) {
  attention::AttentionConfig config{8, 2, 64, 32, std::nullopt, attention::Causal::offset, 7};
  EXPECT_EQ(config.json(),
            R"({"num_heads": 8, "num_kv_heads": 2, "head_dim": 64, "value_dim": 32, "scale": 0.125, )"
            R"("causal": "offset", "key_offset": 7, "left_window": null, "right_window": null, "soft_cap": null, )"
            R"("alibi_slopes": [], "sinks": [], "precision": "float"})");
  EXPECT_EQ(config.kv_head_of(3), 0u);
  EXPECT_EQ(config.kv_head_of(4), 1u);
  config.scale = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error_text([&] { config.check(); }), "usage: [attention] expected a finite scale; found nan");
  config.scale = 1.0f;
  config.head_dim = 0;
  EXPECT_EQ(error_text([&] { config.check(); }), "usage: [attention] expected at least 1 for head_dim; found 0");
}

}  // namespace
}  // namespace clearhead::tests
