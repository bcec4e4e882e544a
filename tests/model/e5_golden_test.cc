// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>

#include "clearhead/format/checkpoint.h"
#include "clearhead/model/families/family.h"
#include "tests/model/encoder_golden.h"
#include "tests/support/model_folder.h"

namespace clearhead::model::encoder {
namespace {

constexpr double kWeightTolerance = 5e-5, kHiddenTolerance = 1e-4;

const LoadedModel& e5() {
  static const LoadedModel model =
      load_model(std::make_shared<const format::Checkpoint>(format::Checkpoint::open(clearhead::tests::e5_folder())));
  return model;
}

class E5Golden : public testing::TestWithParam<GoldenText> {};

TEST_P(E5Golden, AllHeadsAndTheHiddenStateAreThoseOfPyTorch) {
  expect_golden(e5().transformer, "e5_", GetParam(), kWeightTolerance, kHiddenTolerance);
}

INSTANTIATE_TEST_SUITE_P(Texts, E5Golden,
                         testing::Values(GoldenText{"one_token", 1}, GoldenText{"cat", 8}, GoldenText{"chinese", 14},
                                         GoldenText{"markup", 25}, GoldenText{"five_sentences", 120},
                                         GoldenText{"longest", 512}),
                         name_of);

// Pieces: <s> xiao ming zai tushuguan jie le yiben hou hou de shu . </s>
TEST(E5, TheBookLooksAtWhatItIsLikeWhereAndWhatIsDoneWithIt) {
  const Seen seen(e5().transformer, ids_of(golden("e5_chinese")));
  constexpr size_t kLibrary = 4, kBorrow = 5, kOne = 7, kThick = 9, kOf = 10, kBook = 11;
  EXPECT_NEAR(seen.weight(0, 2, kBook, kOf), 0.52, 0.005);
  EXPECT_NEAR(seen.weight(0, 2, kBook, kThick), 0.27, 0.005);
  EXPECT_NEAR(seen.weight(2, 1, kBook, kLibrary), 0.31, 0.005);
  EXPECT_NEAR(seen.weight(0, 6, kBook, kLibrary), 0.23, 0.005);
  EXPECT_NEAR(seen.weight(7, 4, kBook, kBorrow), 0.28, 0.005);
  EXPECT_NEAR(seen.weight(7, 4, kBook, kOne), 0.15, 0.005);
  EXPECT_NEAR(seen.weight(4, 10, kBook, kBorrow), 0.22, 0.005);
}

// Its model_type is bert and it has pads of id 1: positions count from 0 all the same.
TEST(E5, HasMoreRowsThanTheTokenizerHasPieces) {
  EXPECT_EQ(e5().transformer.config().vocab_size, 250037u);
  EXPECT_TRUE(e5().warnings.empty());
}

}  // namespace
}  // namespace clearhead::model::encoder
