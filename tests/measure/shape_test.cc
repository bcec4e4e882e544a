// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "clearhead/measure/attention_shape.h"
#include "clearhead/measure/encoder_run.h"
#include "tests/support/error_text.h"

namespace clearhead {
namespace {

using measure::AttentionShape;
using measure::EncoderShape;

TEST(AttentionShapeTest, ReadsBackWhatItWrites) {
  for (const AttentionShape& shape : measure::attention_shapes()) {
    EXPECT_EQ(AttentionShape::parse(shape.text()), shape) << shape.text();
  }
  const AttentionShape decode = AttentionShape::parse("2x9/3 1 of 4096 64");
  EXPECT_EQ(decode, (AttentionShape{2, 9, 3, 1, 4096, 64, false}));
  EXPECT_EQ(AttentionShape::parse("1x8 64 32 causal"), (AttentionShape{1, 8, 8, 64, 64, 32, true}));
}

TEST(AttentionShapeTest, RefusesWhatIsNoShape) {
  for (const char* text :
       {"", "1x8", "1x8 64", "0x8 64 64", "1x9/2 64 64", "1x8 64 64 full", "1x8  64 64", "1x8 64 64 ",
        "1x8 64 of 32 64", "1x8 -1 64", "99999999999999999999x8 64 64", "1x8/0 64 64"}) {
    const std::string found = tests::error_text([&] { AttentionShape::parse(text); });
    EXPECT_TRUE(found.starts_with("usage: [attention shape] expected BATCHxHEADS")) << text << ": " << found;
  }
}

TEST(AttentionShapeTest, CountsOperations) {
  EXPECT_EQ(AttentionShape::parse("1x8 64 64").operations(), 4.0 * 8 * 64 * 64 * 64);
  EXPECT_EQ(AttentionShape::parse("1x9/3 512 64 causal").operations(), 2.0 * 9 * 512 * 512 * 64);
  EXPECT_EQ(AttentionShape::parse("1x9/3 1 of 4096 64").operations(), 4.0 * 9 * 4096 * 64);
}

TEST(AttentionShapeTest, LastQuerySeesTheLastKey) {
  const auto config = AttentionShape::parse("1x4/2 3 of 10 16 causal").config();
  EXPECT_EQ(config.key_offset, 7);
  EXPECT_EQ(config.num_kv_heads, 2u);
}

TEST(EncoderShapeTest, ReadsBackWhatItWrites) {
  for (const EncoderShape& shape : measure::encoder_shapes()) {
    const EncoderShape read = EncoderShape::parse(shape.text());
    EXPECT_EQ(read.batch, shape.batch);
    EXPECT_EQ(read.seq_len, shape.seq_len);
  }
  for (const char* text : {"", "8", "8x", "x8", "0x8", "8x0", "8x16 ", "8 x16", "8x9999999"}) {
    EXPECT_EQ(tests::error_text([&] { EncoderShape::parse(text); }).rfind("usage: [encoder shape]", 0), 0u) << text;
  }
}

// 6 layers of 4 maps 384 x 384 and 2 of 384 x 1536, 12 heads of 32: 22.4 million operations a token at 128.
TEST(EncoderShapeTest, CountsOperationsOfAWholeModel) {
  model::ModelConfig config;
  config.num_layers = 6;
  config.d_model = 384;
  config.d_ff = 1536;
  config.attention.num_heads = config.attention.num_kv_heads = 12;
  config.attention.head_dim = config.attention.value_dim = 32;
  const double maps = 2.0 * (4 * 384 * 384 + 2 * 384 * 1536), seen = 4.0 * 128 * 384;
  EXPECT_EQ(measure::encoder_operations(config, {8, 128}), 8 * 128 * 6 * (maps + seen));
}

}  // namespace
}  // namespace clearhead
