// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/rotary.h"

#include <gtest/gtest.h>

#include <string>

#include "clearhead/kernels/reference.h"
#include "tests/kernels/values.h"
#include "tests/support/targets.h"

namespace clearhead::kernels {
namespace {

using tests::as_double;
using tests::bits_of;
using tests::normal_values;

struct Rotation {
  std::vector<float> head, cosines, sines;
};

Rotation rotation(size_t count, size_t rest) {
  Rotation one{normal_values(2 * count + rest, 1), {}, {}};
  for (size_t i = 0; i < count; ++i) {
    one.cosines.push_back(static_cast<float>(std::cos(1.7 * static_cast<double>(i))));
    one.sines.push_back(static_cast<float>(std::sin(1.7 * static_cast<double>(i))));
  }
  return one;
}

TEST(Rotary, StaysWithinItsStatedErrorOnEveryTarget) {
  double worst = 0;
  tests::for_each_target([&](const std::string&) {
    for (size_t count : {0, 1, 3, 4, 7, 8, 16, 17, 32, 64}) {
      for (RotaryLayout layout : {RotaryLayout::halves, RotaryLayout::interleaved}) {
        const bool interleaved = layout == RotaryLayout::interleaved;
        const Rotation one = rotation(count, 5);
        std::vector<float> found = one.head;
        std::vector<double> wanted = as_double(one.head);
        rotate(found, one.cosines, one.sines, layout);
        reference::rotate(wanted, as_double(one.cosines), as_double(one.sines), interleaved);
        for (size_t i = 0; i < 2 * count; ++i) {
          const size_t pair = interleaved ? i ^ 1 : (i + count) % (2 * count);
          const double size = std::abs(double{one.head[i]}) + std::abs(double{one.head[pair]});
          worst = std::max(worst, std::abs(found[i] - wanted[i]) / size);
        }
        for (size_t i = 2 * count; i < found.size(); ++i) EXPECT_EQ(found[i], one.head[i]);
      }
    }
  });
  EXPECT_LE(worst, 0x1p-23);
  EXPECT_GT(worst, 0);
}

TEST(Rotary, HasTheSameBitsOnEveryTargetWithFusedMultiplyAdd) {
  for (RotaryLayout layout : {RotaryLayout::halves, RotaryLayout::interleaved}) {
    std::vector<uint32_t> first;
    tests::for_each_target([&](const std::string& name) {
      if (!tests::has_fused_multiply_add(name)) return;
      Rotation one = rotation(37, 3);
      rotate(one.head, one.cosines, one.sines, layout);
      if (first.empty()) first = bits_of(one.head);
      EXPECT_EQ(bits_of(one.head), first);
    });
    EXPECT_FALSE(first.empty());
  }
}

TEST(Rotary, TellsItsLayoutsApart) {
  const float cosines[] = {std::cos(1.0f), std::cos(0.01f)}, sines[] = {std::sin(1.0f), std::sin(0.01f)};
  std::vector<float> halves = {1, 2, 3, 4}, interleaved = halves;
  rotate(halves, cosines, sines, RotaryLayout::halves);
  rotate(interleaved, cosines, sines, RotaryLayout::interleaved);
  const double want_halves[] = {-1.984110649, 1.959900667, 2.462377902, 4.019799668};
  const double want_interleaved[] = {-1.142639664, 1.922075597, 2.959850668, 4.029799502};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(halves[i], want_halves[i], 1e-6);
    EXPECT_NEAR(interleaved[i], want_interleaved[i], 1e-6);
  }
}

TEST(Rotary, KeepsPositionsBeyondWhatAShortFloatHolds) {
  for (double position : {256.0, 4095.0, 15961.0, 131070.0}) {
    const float cosines[] = {static_cast<float>(std::cos(position)), static_cast<float>(std::cos(position + 1))};
    const float sines[] = {static_cast<float>(std::sin(position)), static_cast<float>(std::sin(position + 1))};
    std::vector<float> here = {1, 0}, next = {1, 0};
    rotate(here, std::span(cosines).first(1), std::span(sines).first(1), RotaryLayout::halves);
    rotate(next, std::span(cosines).last(1), std::span(sines).last(1), RotaryLayout::halves);
    EXPECT_NEAR(here[0] * next[0] + here[1] * next[1], std::cos(1.0), 1e-6) << position;
  }
}

}  // namespace
}  // namespace clearhead::kernels
