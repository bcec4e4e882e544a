// SPDX-License-Identifier: Apache-2.0
#include "clearhead/linear/linear.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "clearhead/base/parallel.h"
#include "clearhead/kernels/activation.h"
#include "tests/support/hashed_values.h"
#include "tests/support/targets.h"

namespace clearhead::linear {
namespace {

using tensor::TensorView;
using tests::hashed_values;

TensorView view_of(const std::vector<float>& values, tensor::Shape shape) {
  return {tensor::DType::f32, std::move(shape), std::as_bytes(std::span(values))};
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// A linear map with its operands.
struct Problem {
  size_t in, out;
  std::vector<float> weight, bias;
  PackedLinear packed;

  Problem(size_t some_in, size_t some_out)
      : in(some_in),
        out(some_out),
        weight(hashed_values(1, in * out)),
        bias(hashed_values(2, out)),
        packed(view_of(weight, {out, in}), view_of(bias, {out})) {}

  std::vector<float> run(std::span<const float> input, const Epilogue& epilogue = {}) const {
    const size_t rows = input.size() / in;
    std::vector<float> output(rows * out, 7.0f);
    linear(input, rows, packed, output, epilogue);
    return output;
  }

  // The definition for one output: fused, in order, the bias last.
  float definition(const float* row, size_t j, bool fused, bool backwards = false) const {
    float sum = 0;
    for (size_t i = 0; i < in; ++i) {
      const size_t k = backwards ? in - 1 - i : i;
      if (fused) {
        sum = std::fma(row[k], weight[j * in + k], sum);
      } else {
        const float term = row[k] * weight[j * in + k];
        sum += term;
      }
    }
    return sum + bias[j];
  }
};

// Sets the number of threads for one scope.
class Threads {
 public:
  explicit Threads(size_t count) : before_(base::num_threads()) { base::set_num_threads(count); }
  ~Threads() { base::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  size_t before_;
};

constexpr std::pair<size_t, size_t> kShapes[] = {{1, 1}, {3, 15}, {32, 16}, {37, 17}, {64, 100}, {20, 200}};  // in, out

TEST(Linear, HasTheBitsOfItsDefinitionOnEveryTarget) {
  tests::for_each_target([](const std::string& target) {
    const bool fused = tests::has_fused_multiply_add(target);
    for (const auto& [in, out] : kShapes) {
      const Problem p(in, out);
      for (size_t rows : {0, 1, 2, 5, 6, 7, 13}) {
        const auto input = hashed_values(3, rows * in);
        const auto output = p.run(input);
        for (size_t i = 0; i < rows; ++i) {
          for (size_t j = 0; j < out; ++j) {
            ASSERT_EQ(output[i * out + j], p.definition(&input[i * in], j, fused))
                << rows << " x " << in << " x " << out << " at " << i << ", " << j;
          }
        }
      }
    }
  });
}

TEST(Linear, ARowHasTheSameBitsAloneAndInAnyBatch) {
  const Problem p(70, 180);
  const auto input = hashed_values(3, 230 * p.in);
  const auto whole = p.run(input);
  for (size_t rows = 1; rows <= 230; rows += rows < 110 ? 1 : 40) {
    ASSERT_TRUE(same_bits(p.run(std::span(input).first(rows * p.in)), std::span(whole).first(rows * p.out))) << rows;
  }
  for (size_t row = 0; row < 230; row += 7) {
    ASSERT_TRUE(
        same_bits(p.run(std::span(input).subspan(row * p.in, p.in)), std::span(whole).subspan(row * p.out, p.out)))
        << "row " << row;
  }
}

TEST(Linear, AnyNumberOfThreadsGivesTheSameBits) {
  const Problem p(96, 300);
  for (size_t rows : {1, 7, 100, 250}) {
    const auto input = hashed_values(3, rows * p.in);
    std::vector<float> one;
    for (size_t threads = 1; threads <= 5; ++threads) {
      const Threads scope(threads);
      const auto output = p.run(input, {.activation = Activation::gelu});
      if (threads == 1) one = output;
      EXPECT_TRUE(same_bits(output, one)) << rows << " rows, " << threads << " threads";
    }
  }
}

TEST(Linear, ASumInAnotherOrderWouldShow) {
  const Problem p(384, 64);
  const auto input = hashed_values(3, p.in);
  size_t different = 0;
  for (size_t j = 0; j < p.out; ++j) {
    different += p.definition(input.data(), j, true) != p.definition(input.data(), j, true, true);
  }
  EXPECT_GE(different, p.out / 2);
}

TEST(Linear, HasTheSameBitsOnEveryTargetWithFusedMultiplyAdd) {
  const Problem p(100, 130);
  const auto input = hashed_values(3, 50 * p.in);
  std::vector<float> first;
  tests::for_each_target([&](const std::string& target) {
    if (!tests::has_fused_multiply_add(target)) return;
    const auto output = p.run(input, {.activation = Activation::gelu_tanh});
    if (first.empty()) first = output;
    EXPECT_TRUE(same_bits(output, first));
  });
  if (first.empty()) GTEST_SKIP() << "no target with fused multiply-add on this machine";
}

TEST(Linear, TheEpilogueHasTheBitsOfTheStepsOneAfterTheOther) {
  tests::for_each_target([](const std::string&) {
    const Problem p(50, 77);
    const PackedLinear without_bias(view_of(p.weight, {p.out, p.in}));
    const size_t rows = 9;
    const auto input = hashed_values(3, rows * p.in), residual = hashed_values(4, rows * p.out);
    const std::vector<std::pair<Activation, void (*)(std::span<const float>, std::span<float>)>> activations = {
        {Activation::none, nullptr},
        {Activation::gelu, kernels::gelu},
        {Activation::gelu_tanh, kernels::gelu_tanh},
        {Activation::silu, kernels::silu},
        {Activation::relu, kernels::relu}};
    for (bool has_bias : {true, false}) {
      const PackedLinear& packed = has_bias ? p.packed : without_bias;
      std::vector<float> plain(rows * p.out);
      linear(input, rows, packed, plain);
      for (const auto& [activation, function] : activations) {
        std::vector<float> want = plain, got(rows * p.out);
        if (function != nullptr) function(want, want);
        linear(input, rows, packed, got, {.activation = activation});
        EXPECT_TRUE(same_bits(got, want));
        std::vector<float> multiplied = want;
        for (size_t i = 0; i < want.size(); ++i) multiplied[i] *= residual[i];
        got = residual;
        linear(input, rows, packed, got, {.activation = activation, .factor = got.data()});
        EXPECT_TRUE(same_bits(got, multiplied)) << "factor in place";
        for (size_t i = 0; i < want.size(); ++i) multiplied[i] += residual[i];
        linear(input, rows, packed, got,
               {.activation = activation, .factor = residual.data(), .residual = residual.data()});
        EXPECT_TRUE(same_bits(got, multiplied));
        for (size_t i = 0; i < want.size(); ++i) want[i] += residual[i];
        linear(input, rows, packed, got, {.activation = activation, .residual = residual.data()});
        EXPECT_TRUE(same_bits(got, want));
        got = residual;
        linear(input, rows, packed, got, {.activation = activation, .residual = got.data()});
        EXPECT_TRUE(same_bits(got, want)) << "in place";
      }
    }
  });
}

TEST(Linear, PoisonStaysInItsRowAndNaNIsStoredTheSame) {
  tests::for_each_target([](const std::string&) {
    const Problem p(40, 50);
    auto input = hashed_values(3, 8 * p.in);
    const auto clean = p.run(input);
    input[3 * p.in + 7] = -std::numeric_limits<float>::quiet_NaN();
    input[5 * p.in + 1] = std::numeric_limits<float>::infinity();
    const auto poisoned = p.run(input);
    for (size_t i = 0; i < 8; ++i) {
      for (size_t j = 0; j < p.out; ++j) {
        const float value = poisoned[i * p.out + j];
        if (i == 3)
          EXPECT_EQ(std::bit_cast<uint32_t>(value), 0x7fc00000u);
        else if (i == 5)
          EXPECT_TRUE(std::isinf(value));
        else
          EXPECT_EQ(value, clean[i * p.out + j]);
      }
    }
  });
}

TEST(Linear, WritesNothingBesideItsOutput) {
  tests::for_each_target([](const std::string&) {
    for (size_t out : {1, 16, 17, 63, 65}) {
      const Problem p(12, out);
      for (size_t rows : {1, 6, 97}) {
        const auto input = hashed_values(3, rows * p.in + 1);
        std::vector<float> output(rows * out + 2, 7.0f);
        linear(std::span(input).subspan(1), rows, p.packed, std::span(output).subspan(1, rows * out));
        EXPECT_EQ(output.front(), 7.0f);
        EXPECT_EQ(output.back(), 7.0f);
      }
    }
  });
}

}  // namespace
}  // namespace clearhead::linear
