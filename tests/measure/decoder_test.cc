// SPDX-License-Identifier: Apache-2.0
#include "clearhead/measure/decoder_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/error_text.h"
#include "tests/support/model_folder.h"

namespace clearhead::measure {
namespace {

using tests::error_text;

TEST(DecoderShapeTest, IsWhatItsTextSays) {
  for (const char* text : {"prompt 512", "decode 1"}) EXPECT_EQ(DecoderShape::parse(text).text(), text);
  for (const char* text : {"prompt", "prompt 0", "think 5", "decode 5x", "decode -1", ""}) {
    EXPECT_NE(error_text([&] { DecoderShape::parse(text); }).find("[decoder shape]"), std::string::npos) << text;
  }
}

// The logits of the last token, whatever ran before, however often, looked at or not.
TEST(DecoderRunTest, GivesTheLogitsOfTheWholeText) {
  const auto session = engine::Session::open(tests::smollm2_file().string());
  const std::vector<int64_t> all = {504, 2644, 2643, 335, 260, 2644, 2643, 335, 504, 2644, 2643, 335,
                                    260, 2644, 2643, 335, 504, 2644, 2643, 335, 260, 2644, 2643};
  const auto whole = [&](size_t count, linear::Compute compute) {
    const tensor::Tensor hidden =
        session.transformer().run({.ids = std::span(all).first(count), .type_ids = {}, .compute = compute});
    return session.transformer().logits(hidden.as<float>().last(session.config().d_model));
  };
  const auto ids = [&](size_t count) {
    tensor::Tensor tensor(tensor::DType::i64, {count});
    std::copy_n(all.begin(), count, tensor.as<int64_t>().begin());
    return tensor;
  };
  for (const auto compute : {linear::Compute::single, linear::Compute::bfloat16}) {
    DecoderRun prompt(session, {false, 12}, ids(12), compute),
        decode(session, {true, 7}, ids(7 + kDecodedTokens), compute);
    for (const bool looks : {false, true}) {
      prompt.run(looks);
      decode.run(looks);
      EXPECT_TRUE(std::ranges::equal(prompt.logits().as<float>(), whole(12, compute).as<float>()));
      EXPECT_TRUE(std::ranges::equal(decode.logits().as<float>(), whole(23, compute).as<float>()));
    }
  }
  EXPECT_EQ(error_text([&] {
              DecoderRun(session, {false, 12}, ids(13));
            }),
            "usage: [decoder inputs] expected ids of type I64 and shape [12]; found I64 [13]");
}

}  // namespace
}  // namespace clearhead::measure
