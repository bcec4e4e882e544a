// SPDX-License-Identifier: Apache-2.0
// A second run of the same shape allocates nothing.
#include <gtest/gtest.h>

#include "clearhead/base/memory.h"
#include "clearhead/base/parallel.h"
#include "clearhead/model/transformer.h"
#include "clearhead/model/workspace.h"
#include "tests/allocation/counted.h"
#include "tests/engine/random_model.h"

namespace clearhead::model {
namespace {

// Allocations of one call.
template <class Call>
size_t allocations_of(const Call& call) {
  const size_t before = tests::allocations();
  call();
  return tests::allocations() - before;
}

TEST(Allocations, AreCounted) {
  EXPECT_EQ(allocations_of([] {
              int* volatile number = new int;  // or the compiler leaves both out
              delete number;
            }),
            1U);
  EXPECT_EQ(allocations_of([] { base::AlignedBuffer small(100); }), 1U);
  EXPECT_EQ(allocations_of([] { base::AlignedBuffer large(size_t{64} << 20); }), 1U);
}

class Allocations : public testing::TestWithParam<ModelConfig (*)()> {};

TEST_P(Allocations, OfASecondRunThatIsNoLargerAreNone) {
  const Transformer model = tests::random_model(GetParam()());
  const std::vector<int64_t> ids(290, 3);
  const std::vector<size_t> texts = {7, 260, 1, 22}, fewer = {9, 9}, one = {280};
  const size_t threads_before = base::num_threads();
  for (size_t threads : {1, 2}) {
    base::set_num_threads(threads);
    Workspace workspace;
    EXPECT_GT(allocations_of([&] { model.run({ids, {}, texts}, workspace); }), 0U);
    EXPECT_EQ(allocations_of([&] { model.run({ids, {}, texts}, workspace); }), 0U) << threads << " threads";
    EXPECT_EQ(allocations_of([&] { model.run({std::span(ids).first(18), {}, fewer}, workspace); }), 0U);
    model.run({std::span(ids).first(280), {}, one}, workspace);
    EXPECT_EQ(allocations_of([&] { model.run({std::span(ids).first(280), {}, one}, workspace); }), 0U);
  }
  base::set_num_threads(threads_before);
}

INSTANTIATE_TEST_SUITE_P(Models, Allocations,
                         testing::Values(&tests::encoder_config, &tests::decoder_config,
                                         &tests::attention_only_config));

}  // namespace
}  // namespace clearhead::model
