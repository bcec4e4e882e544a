// SPDX-License-Identifier: Apache-2.0
// Elementary functions and activations on 4096 floats, one thread, on every SIMD target of this machine.
#include "clearhead/kernels/elementary.h"

#include <benchmark/benchmark.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "clearhead/base/target.h"
#include "clearhead/kernels/activation.h"
#include "clearhead/kernels/reference.h"

namespace {

using namespace clearhead;

struct Function {
  const char* name;
  void (*fast)(std::span<const float>, std::span<float>);
  double (*definition)(double);
};

const Function kFunctions[] = {
    {"exp2", kernels::exp2, std::exp2},
    {"log2", kernels::log2, [](double x) { return std::log2(std::abs(x)); }},
    {"tanh", kernels::tanh, std::tanh},
    {"erf", kernels::erf, std::erf},
    {"gelu", kernels::gelu, kernels::reference::gelu},
    {"gelu_tanh", kernels::gelu_tanh, kernels::reference::gelu_tanh},
    {"silu", kernels::silu, kernels::reference::silu},
};

void run(benchmark::State& state, const std::string& target, const Function& function) {
  base::force_simd_target(target);
  std::vector<float> input(4096), output(4096);
  const bool positive = std::string_view(function.name) == "log2";
  for (size_t i = 0; i < input.size(); ++i) input[i] = (positive ? 1.0f : -8.0f) + float(i) / 256;
  function.fast(input, output);
  for (size_t i = 0; i < input.size(); i += 97) {
    const double want = function.definition(input[i]);
    if (!(std::abs(output[i] - want) <= 1e-6 * std::abs(want) + 1e-7)) return state.SkipWithError("wrong answer");
  }
  for (auto _ : state) {
    function.fast(input, output);
    benchmark::DoNotOptimize(output.data());
  }
  state.SetItemsProcessed(int64_t(state.iterations() * input.size()));
  base::force_simd_target("");
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const std::string& target : base::simd_targets()) {
    for (const Function& function : kFunctions) {
      const std::string name = "elementary/" + target + "/" + function.name;
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { run(state, target, function); });
    }
  }
  benchmark::RunSpecifiedBenchmarks();
}
