// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "clearhead/apps/cli/op/attention_problem.h"
#include "clearhead/apps/cli/op/attention_statistics.h"
#include "clearhead/apps/cli/op/kept.h"
#include "clearhead/apps/cli/op/operators.h"
#include "clearhead/attention/exact.h"
#include "clearhead/attention/fused.h"
#include "clearhead/attention/reference.h"
#include "clearhead/base/error.h"

namespace clearhead::apps {
namespace {

using capture::Stage;
using tensor::DType;

constexpr std::string_view kWhere = "op attention";
constexpr std::string_view kOwnOutputs[] = {"Y",           "row_reference", "row_sum",
                                            "present_key", "present_value", "qk_matmul_output"};

// What may be asked for.
std::vector<std::string_view> all_outputs() {
  std::vector<std::string_view> names(std::begin(kOwnOutputs), std::end(kOwnOutputs));
  names.insert(names.end(), std::begin(kStatisticOutputs), std::end(kStatisticOutputs));
  return names;
}

// What is given if nothing is asked for.
std::vector<std::string_view> default_outputs(bool cached, bool scores) {
  std::vector<std::string_view> names = {"Y", "row_reference", "row_sum"};
  if (cached) names.insert(names.end(), {"present_key", "present_value"});
  if (scores) names.emplace_back("qk_matmul_output");
  return names;
}

// What a run gives, F32 or F64.
struct Result {
  tensor::Tensor head_output, row_reference, row_sum;
  tensor::Tensor shown;  // the stage that was asked for
};

Result run_in_double(const AttentionProblem& problem, std::optional<Stage> stage) {
  const auto output = attention::reference_attention(
      problem.config, {problem.batch, problem.query_len, problem.key_len, problem.query.as<double>(),
                       problem.key.as<double>(), problem.value.as<double>(), problem.mask, problem.sequences});
  const size_t batch = problem.batch, heads = problem.config.num_heads, len = problem.query_len;
  Result result;
  result.head_output = from_doubles(output.head_output, {batch, len, heads, problem.config.value_dim});
  result.row_reference = from_doubles(output.row_reference, {batch, heads, len});
  result.row_sum = from_doubles(output.row_sum, {batch, heads, len});
  if (stage) {
    const auto& values = *stage == Stage::raw_scores ? output.raw_scores
                         : *stage == Stage::scores   ? output.scores
                                                     : output.weights;
    result.shown = from_doubles(values, {batch, heads, len, problem.key_len});
  }
  return result;
}

Result run_in_float(const AttentionProblem& problem, std::optional<Stage> stage) {
  Kept kept(stage);
  const attention::AttentionInput input = float_input(problem);
  auto output = stage ? attention::exact_attention(problem.config, input, &kept)
                      : attention::fused_attention(problem.config, input);
  return {std::move(output.head_output), std::move(output.row_reference), std::move(output.row_sum),
          std::move(kept).take()};
}

Result run(const AttentionProblem& problem, std::optional<Stage> stage) {
  return problem.query.dtype() == DType::f64 ? run_in_double(problem, stage) : run_in_float(problem, stage);
}

// Raw scores become the scaled product or what the soft cap (0: none) makes of it, in place.
template <class Real>
void scale_and_cap(tensor::Tensor& raw, Real scale, double cap) {
  for (Real& value : raw.as<Real>()) {
    value *= scale;
    if (cap != 0) value = static_cast<Real>(cap * std::tanh(static_cast<double>(value) / cap));
  }
}

// The product of all queries and keys, whatever may be seen, scaled and perhaps capped.
tensor::Tensor products(AttentionProblem& problem, bool capped) {
  problem.mask = {};
  problem.sequences.clear();
  problem.config.causal = attention::Causal::none;
  tensor::Tensor raw = run(problem, Stage::raw_scores).shown;
  const attention::AttentionConfig& config = problem.config;
  const double cap = capped ? config.soft_cap.value_or(0.0f) : 0.0;
  if (raw.dtype() == DType::f64) {
    scale_and_cap<double>(raw, config.scale ? *config.scale : 1 / std::sqrt(static_cast<double>(config.head_dim)), cap);
  } else {
    scale_and_cap<float>(raw, config.effective_scale(), cap);
  }
  return raw;
}

}  // namespace

Outputs attention_operator(const OpRequest& request, Inputs& inputs, Attributes& attributes) {
  const AttentionSettings settings = read_attention_settings(attributes);
  AttentionProblem problem = read_attention_problem(inputs, settings);
  Outputs outputs(std::string(kWhere), request.outputs, all_outputs(),
                  default_outputs(problem.cached, settings.score_output.has_value()));
  if (!problem.sequences.empty() && (outputs.wants("present_key") || outputs.wants("present_value"))) {
    base::refuse(kWhere, "no present_key or present_value beside nonpad_kv_seqlen", "both");
  }
  const ScoreOutput mode = settings.score_output.value_or(ScoreOutput::scaled);
  std::optional<Stage> stage;
  if (outputs.wants("qk_matmul_output")) {
    if (mode == ScoreOutput::after_mask) stage = Stage::scores;
    if (mode == ScoreOutput::weights) stage = Stage::weights;
  }
  Result result = run(problem, stage);
  const DType first = problem.first, rows = real_of(first);
  const attention::AttentionConfig& config = problem.config;
  outputs.add("Y",
              problem.flat ? std::move(result.head_output)
                                 .reshaped({problem.batch, problem.query_len, config.num_heads * config.value_dim})
                           : swap_middle_axes(result.head_output),
              first);
  outputs.add("row_reference", result.row_reference, rows);
  outputs.add("row_sum", result.row_sum, rows);
  add_statistics(problem, settings.statistics, outputs);
  if (outputs.wants("present_key")) outputs.add("present_key", swap_middle_axes(problem.key), first);
  if (outputs.wants("present_value")) outputs.add("present_value", swap_middle_axes(problem.value), first);
  if (outputs.wants("qk_matmul_output")) {
    if (!stage) result.shown = products(problem, mode == ScoreOutput::after_soft_cap);
    outputs.add("qk_matmul_output", result.shown, first);
  }
  return outputs;
}

}  // namespace clearhead::apps
