// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "clearhead/kernels/reference.h"
#include "tests/kernels/values.h"
#include "tests/support/targets.h"

namespace clearhead::kernels {
namespace {

using tests::bits_of;
using tests::kInf;
using tests::kNaN;

struct Function {
  const char* name;
  void (*array)(std::span<const float>, std::span<float>);
  double (*definition)(double);
  double relative_from;  // the relative error holds from here on
};

const Function kFunctions[] = {
    {"gelu", gelu, reference::gelu, -8},
    {"gelu_tanh", gelu_tanh, reference::gelu_tanh, -5},
    {"silu", silu, reference::silu, -60},
    {"relu", relu, reference::relu, -100},
};

float value_of(const Function& function, float x) {
  float y;
  function.array({&x, 1}, {&y, 1});
  return y;
}

std::vector<float> range(double from, double to, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = float(from + (to - from) * double(i) / double(count));
  return values;
}

TEST(Activation, StaysWithinItsErrorOnEveryTarget) {
  auto input = range(-100, 100, 400'000);
  for (float x : range(-9, 9, 400'000)) input.push_back(x);
  for (float x = 1e-38f; x < 1; x *= 1.1f) input.insert(input.end(), {x, -x});
  std::vector<float> output(input.size());
  for (const Function& function : kFunctions) {
    tests::for_each_target([&](const std::string& target) {
      function.array(input, output);
      double worst_absolute = 0, worst_relative = 0;
      for (size_t i = 0; i < input.size(); ++i) {
        const double truth = function.definition(input[i]), error = std::abs(output[i] - truth);
        if (input[i] != 0) worst_absolute = std::max(worst_absolute, error / std::abs(double(input[i])));
        if (input[i] > function.relative_from && error > 0x1p-148) {
          worst_relative = std::max(worst_relative, error / std::abs(truth));
        }
      }
      std::printf("%-9s %-8s largest error %.2e |x|, relative %.2e\n", function.name, target.c_str(), worst_absolute,
                  worst_relative);
      EXPECT_LE(worst_absolute, 2e-7) << function.name;
      EXPECT_LE(worst_relative, 4e-6) << function.name;
    });
  }
}

TEST(Activation, TellsTheTwoKindsOfGeluApart) {
  tests::for_each_target([](const std::string&) {
    EXPECT_NEAR(value_of(kFunctions[0], -2.7f), -0.00936082927, 1e-8);
    EXPECT_NEAR(value_of(kFunctions[1], -2.7f), -0.00888759464, 1e-8);
    EXPECT_NEAR(value_of(kFunctions[0], 1.0f), 0.8413447461, 2e-7);
    EXPECT_NEAR(value_of(kFunctions[1], 1.0f), 0.8411919906, 2e-7);
    EXPECT_NEAR(value_of(kFunctions[0], 3.0f), 2.995950306, 6e-7);
    EXPECT_NEAR(value_of(kFunctions[1], 3.0f), 2.996362608, 6e-7);
  });
}

TEST(Activation, FollowsTheFormulaAtTheEnds) {
  tests::for_each_target([](const std::string&) {
    for (const Function& function : kFunctions) {
      for (float x : {kInf, -kInf, 3e38f, -3e38f, 0.0f, -200.0f, 200.0f, 1e-45f}) {
        const double truth = function.definition(x);
        EXPECT_LE(tests::ulp_error(value_of(function, x), truth), 1) << function.name << " of " << x;
      }
      for (uint32_t nan : {0x7fc00000u, 0xffc00001u}) {
        EXPECT_EQ(std::bit_cast<uint32_t>(value_of(function, std::bit_cast<float>(nan))), 0x7fc00000u) << function.name;
      }
    }
  });
}

TEST(Activation, AnElementsBitsDependNeitherOnItsPlaceNorOnTheLength) {
  const auto input = tests::normal_values(100, 5);
  tests::for_each_target([&](const std::string&) {
    for (const Function& function : kFunctions) {
      for (size_t length = 0; length <= 33; ++length) {
        std::vector<float> output(length + 2, 7.0f);
        function.array({input.data() + 1, length}, {output.data() + 1, length});
        ASSERT_EQ(output.front(), 7.0f);
        ASSERT_EQ(output.back(), 7.0f);
        for (size_t i = 0; i < length; ++i) ASSERT_EQ(output[i + 1], value_of(function, input[i + 1])) << function.name;
      }
    }
  });
}

TEST(Activation, HasTheSameBitsOnEveryTargetWithFusedMultiplyAdd) {
  const auto input = range(-20, 20, 100'000);
  for (const Function& function : kFunctions) {
    std::vector<uint32_t> first;
    size_t ran = 0;
    tests::for_each_target([&](const std::string& target) {
      if (!tests::has_fused_multiply_add(target)) return;
      std::vector<float> output(input.size());
      function.array(input, output);
      if (++ran == 1) first = bits_of(output);
      EXPECT_TRUE(first == bits_of(output)) << function.name;
    });
    if (ran == 0) GTEST_SKIP() << "no target with fused multiply-add on this machine";
  }
}

}  // namespace
}  // namespace clearhead::kernels
