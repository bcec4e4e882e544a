// SPDX-License-Identifier: Apache-2.0
#include "clearhead/kernels/elementary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

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
  float (*scalar)(float);
  double (*definition)(double);
  double bound;  // ULP
};

double exp2_or_nothing(double t) { return t < -126 ? 0 : std::exp2(t); }

const Function kFunctions[] = {
    {"exp2", exp2, exp2, exp2_or_nothing, 3},
    {"log2", log2, log2, [](double x) { return std::log2(x); }, 2},
    {"tanh", tanh, tanh, [](double x) { return std::tanh(x); }, 3},
    {"erf", erf, erf, [](double x) { return std::erf(x); }, 2},
};

// Every kStep-th float of all 2^32, NaNs and infinities among them.
std::vector<float> sweep() {
  constexpr uint64_t kStep = 2017;
  std::vector<float> values;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += kStep)
    values.push_back(std::bit_cast<float>(uint32_t(bits)));
  return values;
}

// Functions are only interesting where they are not constant: 1M values evenly over [from, to].
std::vector<float> range(double from, double to) {
  std::vector<float> values(1 << 20);
  for (size_t i = 0; i < values.size(); ++i) values[i] = float(from + (to - from) * double(i) / double(values.size()));
  return values;
}

void expect_bound(const Function& function, const std::vector<float>& input) {
  std::vector<double> truth(input.size());
  for (size_t i = 0; i < input.size(); ++i) truth[i] = function.definition(input[i]);
  std::vector<float> output(input.size());
  tests::for_each_target([&](const std::string& target) {
    function.array(input, output);
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < input.size(); ++i) {
      if (const double error = tests::ulp_error(output[i], truth[i]); error > worst) worst = error, at = i;
    }
    std::printf("%-6s %-8s largest error %.2f ULP\n", function.name, target.c_str(), worst);
    EXPECT_LE(worst, function.bound) << function.name << " of " << input[at] << " is " << output[at] << ", expected "
                                     << truth[at];
  });
}

TEST(Elementary, StaysWithinItsErrorOverAllFloats) {
  const auto input = sweep();
  for (const Function& function : kFunctions) expect_bound(function, input);
}

TEST(Elementary, StaysWithinItsErrorWhereItVaries) {
  expect_bound(kFunctions[0], range(-127, 128.5));
  expect_bound(kFunctions[0], range(-1, 1));
  expect_bound(kFunctions[1], range(0.4, 3));
  expect_bound(kFunctions[1], range(1 - 1e-3, 1 + 1e-3));
  expect_bound(kFunctions[2], range(-10, 10));
  expect_bound(kFunctions[2], range(0.59, 0.61));
  expect_bound(kFunctions[3], range(-5, 5));
  expect_bound(kFunctions[3], range(0.99, 1.01));
}

TEST(Elementary, RelativeErrorOfExp2IsTheStatedOne) {
  const auto input = range(-126, 128);
  std::vector<float> output(input.size());
  tests::for_each_target([&](const std::string&) {
    exp2(input, output);
    double worst = 0;
    for (size_t i = 0; i < input.size(); ++i) {
      worst = std::max(worst, std::abs(output[i] / std::exp2(double(input[i])) - 1));
    }
    EXPECT_LE(worst, 2.4e-7);
  });
}

TEST(Elementary, IsExactWhereItMustBe) {
  tests::for_each_target([](const std::string&) {
    for (int n = -126; n < 128; ++n) EXPECT_EQ(exp2(float(n)), std::ldexp(1.0f, n)) << n;
    EXPECT_EQ(exp2(-0.0f), 1.0f);
    EXPECT_EQ(exp2(std::nextafter(-126.0f, -kInf)), 0.0f);
    EXPECT_EQ(exp2(-kInf), 0.0f);
    EXPECT_FALSE(std::signbit(exp2(-1e30f)));
    EXPECT_EQ(exp2(128.0f), kInf);
    EXPECT_EQ(exp2(kInf), kInf);
    EXPECT_LT(exp2(std::nextafter(128.0f, 0.0f)), kInf);
    for (int n = -149; n < 128; ++n) EXPECT_EQ(log2(std::ldexp(1.0f, n)), float(n)) << n;
    EXPECT_EQ(log2(0.0f), -kInf);
    EXPECT_EQ(log2(-0.0f), -kInf);
    EXPECT_TRUE(std::isnan(log2(-1.0f)));
    EXPECT_TRUE(std::isnan(log2(-kInf)));
    EXPECT_EQ(log2(kInf), kInf);
    for (auto function : {static_cast<float (*)(float)>(tanh), static_cast<float (*)(float)>(erf)}) {
      EXPECT_EQ(function(kInf), 1.0f);
      EXPECT_EQ(function(-kInf), -1.0f);
      EXPECT_EQ(function(3e38f), 1.0f);
      EXPECT_EQ(std::bit_cast<uint32_t>(function(-0.0f)), 0x80000000u);
      EXPECT_EQ(std::bit_cast<uint32_t>(function(0.0f)), 0u);
    }
  });
}

TEST(Elementary, NaNOfAnyKindStaysNaNAndIsStoredTheSame) {
  std::vector<float> input;
  for (uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7fc00001u, 0x7fffffffu, 0xffffffffu, 0x7fc01234u}) {
    for (int i = 0; i < 5; ++i) input.push_back(std::bit_cast<float>(bits));
  }
  std::vector<float> output(input.size());
  tests::for_each_target([&](const std::string&) {
    for (const Function& function : kFunctions) {
      function.array(input, output);
      EXPECT_EQ(bits_of(output), std::vector<uint32_t>(input.size(), 0x7fc00000u)) << function.name;
    }
  });
}

TEST(Elementary, TanhAndErfAreOddAndDoNotExceedOne) {
  const auto input = range(0, 12);
  std::vector<float> negative(input.size()), output(input.size()), mirrored(input.size());
  for (size_t i = 0; i < input.size(); ++i) negative[i] = -input[i];
  tests::for_each_target([&](const std::string&) {
    for (const Function& function : {kFunctions[2], kFunctions[3]}) {
      function.array(input, output);
      function.array(negative, mirrored);
      for (float& value : mirrored) value = -value;
      EXPECT_EQ(bits_of(output), bits_of(mirrored)) << function.name;
      EXPECT_LE(*std::max_element(output.begin(), output.end()), 1.0f) << function.name;
    }
  });
}

TEST(Elementary, AnElementsBitsDependNeitherOnItsPlaceNorOnTheLength) {
  const auto input = tests::normal_values(100, 5);
  tests::for_each_target([&](const std::string&) {
    for (const Function& function : kFunctions) {
      for (size_t length = 0; length <= 33; ++length) {
        for (size_t shift = 0; shift < 3; ++shift) {
          std::vector<float> output(length + 2, 7.0f);
          function.array({input.data() + shift, length}, {output.data() + 1, length});
          ASSERT_EQ(output.front(), 7.0f);
          ASSERT_EQ(output.back(), 7.0f);
          for (size_t i = 0; i < length; ++i) {
            ASSERT_EQ(std::bit_cast<uint32_t>(output[i + 1]),
                      std::bit_cast<uint32_t>(function.scalar(input[i + shift])))
                << function.name << ", length " << length << ", element " << i;
          }
        }
      }
    }
  });
}

TEST(Elementary, HasTheSameBitsOnEveryTargetWithFusedMultiplyAdd) {
  const auto input = sweep();
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

TEST(Elementary, EveryTargetThatIsForcedIsTheOneThatRuns) {
  std::vector<std::string> ran;
  tests::for_each_target([&](const std::string& target) {
    EXPECT_EQ(base::simd_target(), target);
    ran.push_back(target);
  });
  EXPECT_EQ(ran, base::simd_targets());
  EXPECT_GE(ran.size(), 1u);
}

}  // namespace
}  // namespace clearhead::kernels
