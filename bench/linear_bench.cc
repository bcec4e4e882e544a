// SPDX-License-Identifier: Apache-2.0
// The parallel product at the shapes of all-MiniLM-L6-v2, beside the peak of the same run, on every SIMD target with
// fused multiply-add. The answer is compared with the reference before the clock starts.
#include "clearhead/linear/linear.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "clearhead/base/parallel.h"
#include "clearhead/base/target.h"
#include "clearhead/kernels/reference.h"
#include "clearhead/measure/peak.h"

namespace {

using namespace clearhead;

struct Case {
  std::string target;
  size_t rows, in, out;
  linear::Activation activation;
  double peak;  // GFLOP/s
};

std::vector<float> normal_values(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

tensor::Tensor normal_tensor(tensor::Shape shape, unsigned seed) {
  tensor::Tensor result(shape);
  const auto values = normal_values(result.elements(), seed);
  const float scale = 1 / std::sqrt(static_cast<float>(result.shape()[result.shape().rank() - 1]));  // outputs near 1
  std::transform(values.begin(), values.end(), result.as<float>().begin(), [=](float x) { return x * scale; });
  return result;
}

// True if a few outputs of the last row agree with the definition.
bool is_right(const Case& c, const std::vector<float>& input, const linear::PackedLinear& parameters,
              const std::vector<float>& output) {
  for (size_t j = 0; j < c.out; j += c.out / 7) {
    double sum = parameters.bias_at(j), terms = std::abs(sum);
    for (size_t k = 0; k < c.in; ++k) {
      const double term = double(input[(c.rows - 1) * c.in + k]) * parameters.weight_at(j, k);
      sum += term;
      terms += std::abs(term);
    }
    if (c.activation == linear::Activation::gelu) sum = kernels::reference::gelu(sum);
    if (!(std::abs(output[(c.rows - 1) * c.out + j] - sum) <= double(c.in + 8) * 0x1p-24 * terms)) return false;
  }
  return true;
}

void run(benchmark::State& state, const Case& c) {
  base::force_simd_target(c.target);
  const auto input = normal_values(c.rows * c.in, 1);
  const auto weight = normal_tensor({c.out, c.in}, 2), bias = normal_tensor({c.out}, 3);
  const linear::PackedLinear parameters(weight, bias.view());
  std::vector<float> output(c.rows * c.out);
  const linear::Epilogue epilogue{.activation = c.activation};
  linear::linear(input, c.rows, parameters, output, epilogue);
  if (!is_right(c, input, parameters, output)) return state.SkipWithError("wrong answer");
  for (auto _ : state) {
    linear::linear(input, c.rows, parameters, output, epilogue);
    benchmark::DoNotOptimize(output.data());
  }
  const double operations = 2.0 * double(c.rows * c.in * c.out) * double(state.iterations()) / 1e9;
  state.counters["GFLOP/s"] = benchmark::Counter(operations, benchmark::Counter::kIsRate);
  state.counters["of_peak"] = benchmark::Counter(operations / c.peak, benchmark::Counter::kIsRate);
  base::force_simd_target("");
}

void pack(benchmark::State& state) {
  const auto weight = normal_tensor({6144, 1792}, 2);  // 44 MB, all matrices of all-MiniLM-L6-v2 together
  for (auto _ : state) {
    const linear::PackedLinear parameters(weight);
    benchmark::DoNotOptimize(parameters.panels().data());
  }
  state.SetBytesProcessed(int64_t(size_t(state.iterations()) * weight.bytes().size()));
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const size_t shapes[][2] = {{384, 1152}, {384, 384}, {384, 1536}, {1536, 384}};
  for (const std::string& target : base::simd_targets()) {
    if (target != "AVX2" && target != "AVX3" && target != "AVX3_DL" && target != "NEON") continue;
    base::force_simd_target(target);
    const double peak = measure::multiply_add_peak(base::num_threads());
    base::force_simd_target("");
    for (const auto& shape : shapes) {
      for (size_t rows : {1, 6, 16, 128, 512, 4096}) {
        const auto activation = shape[1] == 1536 ? linear::Activation::gelu : linear::Activation::none;
        const Case c{target, rows, shape[0], shape[1], activation, peak};
        const std::string name = "linear/" + target + "/" + std::to_string(rows) + "x" + std::to_string(shape[0]) +
                                 "x" + std::to_string(shape[1]) +
                                 (activation == linear::Activation::none ? "" : "+gelu");
        benchmark::RegisterBenchmark(name.c_str(), [c](benchmark::State& state) { run(state, c); })->UseRealTime();
      }
    }
  }
  benchmark::RegisterBenchmark("pack/44MB", pack)->UseRealTime()->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();
}
