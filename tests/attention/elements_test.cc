// SPDX-License-Identifier: Apache-2.0
// Query, key and value of narrow types: the bits of the floats that they stand for, on every path.
#include "clearhead/attention/elements.h"

#include <gtest/gtest.h>

#include "clearhead/attention/fused.h"
#include "clearhead/attention/weights.h"
#include "clearhead/base/parallel.h"
#include "problem.h"
#include "tests/support/error_text.h"
#include "tests/support/targets.h"

namespace clearhead::tests {
namespace {

using attention::AttentionInput;
using attention::Causal;
using attention::Precision;
using capture::Stage;
using tensor::DType;

Problem watched(size_t query_len) {
  Problem problem({.batch = 2,
                   .query_len = query_len,
                   .key_len = 530,
                   .num_heads = 4,
                   .num_kv_heads = 2,
                   .head_dim = 21,
                   .value_dim = 13},
                  6, 3.0f);
  problem.config.causal = Causal::offset;
  problem.config.key_offset = 530 - static_cast<int64_t>(query_len);
  problem.sequences = {{0, 0, query_len, 3, 500, problem.config.key_offset - 30}, {1, 0, query_len, 0, 530, 100}};
  return problem;
}

tensor::Tensor narrow(const std::vector<float>& values, DType dtype) {
  return tensor::to_dtype({DType::f32, {values.size()}, std::as_bytes(std::span(values))}, dtype);
}

// The problem in a narrow type, and with the floats that those numbers are.
struct Narrow {
  Narrow(Problem& problem, DType dtype)
      : query(narrow(problem.query, dtype)), key(narrow(problem.key, dtype)), value(narrow(problem.value, dtype)) {
    tensor::copy_to_float(query, problem.query);
    tensor::copy_to_float(key, problem.key);
    tensor::copy_to_float(value, problem.value);
    input = problem.input();
    input.query = query.view(), input.key = key.view(), input.value = value.view();
  }

  tensor::Tensor query, key, value;
  AttentionInput input;
};

TEST(Elements, OfNarrowTypesGiveTheBitsOfTheirFloatsOnEveryPathAndTarget) {
  const size_t before = base::num_threads();
  for_each_target([](const std::string&) {
    for (DType dtype : {DType::f16, DType::bf16}) {
      for (Precision precision : {Precision::single, Precision::bfloat16}) {
        for (size_t query_len : {1, 70}) {  // a few queries are cut by key tiles, many by blocks
          Problem problem = watched(query_len);
          problem.config.precision = precision;
          const Narrow given(problem, dtype);
          Everything seen, seen_of_floats;
          const auto want = all_bits(problem.run(&seen_of_floats));
          EXPECT_TRUE(same_bits(all_bits(attention::exact_attention(problem.config, given.input, &seen)), want));
          for (Stage stage : {Stage::raw_scores, Stage::scores, Stage::weights}) {
            EXPECT_TRUE(same_bits(seen.values(stage), seen_of_floats.values(stage)));
          }
          for (size_t threads : {1, 3}) {
            base::set_num_threads(threads);
            EXPECT_TRUE(same_bits(all_bits(attention::fused_attention(problem.config, given.input)), want));
          }
        }
      }
    }
  });
  base::set_num_threads(before);
}

TEST(Elements, OfNarrowTypesRebuildTheSameWeights) {
  for (DType dtype : {DType::f16, DType::bf16}) {
    Problem problem = watched(9);
    const Narrow given(problem, dtype);
    Everything seen;
    const auto output = problem.run(&seen);
    const attention::RebuiltWeights source(problem.config, given.input,
                                           {output.row_reference.as<float>(), output.row_sum.as<float>()});
    std::vector<float> row(530);
    source.row(1, 3, 8, row);
    EXPECT_TRUE(same_bits(row, seen.values(Stage::weights).last(530)));
  }
}

TEST(Elements, KeepSubnormalsAndInfinitiesOfHalves) {
  Problem problem({.query_len = 2, .key_len = 2, .head_dim = 1, .value_dim = 2});
  problem.config.causal = Causal::top_left;
  problem.query = {1, 1}, problem.key = {0, 0};
  problem.value = {0x1p-24f, -0x1p-23f, std::numeric_limits<float>::infinity(), 0x1p-24f};
  const Narrow given(problem, DType::f16);
  const auto output = floats(attention::fused_attention(problem.config, given.input).head_output);
  EXPECT_EQ(output, (std::vector<float>{0x1p-24f, -0x1p-23f, std::numeric_limits<float>::infinity(), -0x1p-25f}));
}

TEST(Elements, OfOtherTypesAreRefused) {
  const tensor::Tensor doubles(DType::f64, {4});
  EXPECT_EQ(error_text([&] { attention::Elements{doubles.view()}; }),
            "usage: [attention] expected query, key and value of type F32, F16 or BF16; found F64");
}

}  // namespace
}  // namespace clearhead::tests
