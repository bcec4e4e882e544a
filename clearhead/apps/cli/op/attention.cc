// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>

#include "clearhead/apps/cli/op/kept.h"
#include "clearhead/apps/cli/op/operators.h"
#include "clearhead/attention/exact.h"
#include "clearhead/attention/reference.h"
#include "clearhead/base/error.h"

namespace clearhead::apps {
namespace {

using capture::Stage;
using tensor::DType;

constexpr std::string_view kWhere = "op attention";
constexpr std::array<std::string_view, 4> kPlannedAttributes = {"softcap", "softmax_precision", "left_window_size",
                                                                "right_window_size"};
constexpr std::array<std::string_view, 3> kPlannedInputs = {"past_key", "past_value", "nonpad_kv_seqlen"};
constexpr std::array<std::string_view, 2> kPlannedOutputs = {"present_key", "present_value"};
constexpr std::array<std::string_view, 4> kOutputs = {"Y", "row_reference", "row_sum", "qk_matmul_output"};

// Opsets of the operator: 25 is the first that refuses head counts beside 4D inputs, 24 the first whose mask may be
// shorter than the keys.
constexpr int64_t kFirstOpset = 23, kLastOpset = 25;

// What qk_matmul_output shows; after_soft_cap is the same as scaled as long as there is no soft cap.
enum class ScoreOutput { scaled, after_soft_cap, after_mask, weights };

struct Settings {
  bool causal = false;
  std::optional<float> scale;
  std::optional<size_t> num_heads, num_kv_heads;
  std::optional<ScoreOutput> score_output;  // absent: not asked for by attribute
  int64_t opset = kLastOpset;
};

Settings read_settings(Attributes& attributes) {
  Settings settings;
  settings.causal = attributes.flag("is_causal").value_or(false);
  if (const auto scale = attributes.number("scale")) settings.scale = static_cast<float>(*scale);
  settings.num_heads = attributes.count("q_num_heads");
  settings.num_kv_heads = attributes.count("kv_num_heads");
  if (const auto mode = attributes.integer("qk_matmul_output_mode")) {
    if (*mode < 0 || *mode > 3) {
      base::refuse(kWhere, "attribute qk_matmul_output_mode from 0 to 3", fmt::format("{}", *mode));
    }
    settings.score_output = static_cast<ScoreOutput>(*mode);
  }
  settings.opset = attributes.integer("opset").value_or(kLastOpset);
  if (settings.opset < kFirstOpset || settings.opset > kLastOpset) {
    base::refuse(kWhere, fmt::format("attribute opset from {} to {}", kFirstOpset, kLastOpset),
                 fmt::format("{}", settings.opset));
  }
  attributes.check_all_known(kPlannedAttributes);
  return settings;
}

// A tensor [batch, heads, len, dim] or [batch, len, heads * dim] with its axes told apart.
struct HeadTensor {
  tensor::TensorView view;
  size_t batch, heads, len, dim;
};

HeadTensor read_heads(Inputs& inputs, const std::string& name, const std::optional<size_t>& heads,
                      const Settings& settings) {
  const tensor::TensorView view = inputs.required_floating(name);
  const tensor::Shape& shape = view.shape();
  const std::string_view attribute = name == "Q" ? "q_num_heads" : "kv_num_heads";
  if (shape.rank() == 3) {
    if (!heads) base::refuse(kWhere, fmt::format("attribute {} beside 3D inputs", attribute), "none");
    if (shape[2] % *heads != 0) {
      inputs.refuse_shape(name, view, fmt::format("[batch, len, a multiple of {} = {}]", attribute, *heads));
    }
    return {view, shape[0], *heads, shape[1], shape[2] / *heads};
  }
  if (shape.rank() != 4) inputs.refuse_shape(name, view, "[batch, heads, len, dim] or [batch, len, heads * dim]");
  if (heads && settings.opset == kLastOpset) {
    base::refuse(kWhere, "no head counts beside 4D inputs, which have them", fmt::format("attribute {}", attribute));
  }
  if (heads && *heads != shape[1]) {
    inputs.refuse_shape(name, view, fmt::format("[batch, {} = {}, len, dim]", attribute, *heads));
  }
  return {view, shape[0], shape[1], shape[2], shape[3]};
}

// In the order of the computation, as F32 or F64: [batch, len, heads, dim].
tensor::Tensor by_position(const HeadTensor& heads, DType real) {
  tensor::Tensor values = to_real(heads.view, real);
  if (heads.view.shape().rank() == 3) return values;
  return swap_middle_axes(values);
}

// The mask with four axes; a shorter key axis is filled up with what may not be seen, where the opset says so.
tensor::Tensor read_mask(Inputs& inputs, const tensor::TensorView& view, std::array<size_t, 4> full, int64_t opset) {
  if (view.dtype() != DType::bool_ && !tensor::is_floating(view.dtype())) {
    base::refuse(kWhere, "attn_mask of type BOOL, F32, F16, BF16 or F64", std::string(tensor::name_of(view.dtype())));
  }
  const size_t rank = view.shape().rank();
  const tensor::Shape whole{full[0], full[1], full[2], full[3]};
  const bool pads = opset > kFirstOpset && rank > 0 && view.shape()[rank - 1] < full[3];
  std::array<size_t, 4> sizes = {1, 1, 1, 1};
  bool fits = rank <= 4;
  for (size_t axis = 4 - std::min<size_t>(rank, 4); fits && axis < 4; ++axis) {
    sizes[axis] = view.shape()[axis + rank - 4];
    fits = sizes[axis] == full[axis] || sizes[axis] == 1 || (axis == 3 && pads);
  }
  if (!fits) inputs.refuse_shape("attn_mask", view, fmt::format("that broadcasts to {}", whole.text()));
  if (!pads) return tensor::clone(view).reshaped({sizes[0], sizes[1], sizes[2], sizes[3]});
  const bool boolean = view.dtype() == DType::bool_;
  const tensor::Tensor source = tensor::to_dtype(view, boolean ? DType::bool_ : DType::f64);
  const size_t rows = sizes[0] * sizes[1] * sizes[2], given = sizes[3];
  tensor::Tensor padded(source.dtype(), {sizes[0], sizes[1], sizes[2], full[3]});
  for (size_t row = 0; row < rows; ++row) {
    for (size_t key = 0; key < full[3]; ++key) {
      if (boolean) {
        padded.as<bool>()[row * full[3] + key] = key < given && source.as<bool>()[row * given + key];
      } else {
        padded.as<double>()[row * full[3] + key] =
            key < given ? source.as<double>()[row * given + key] : -std::numeric_limits<double>::infinity();
      }
    }
  }
  return padded;
}

// What a run gives, F32 or F64.
struct Result {
  tensor::Tensor head_output, row_reference, row_sum;
  tensor::Tensor shown;  // the stage that was asked for
};

struct Problem {
  attention::AttentionConfig config;
  size_t batch, query_len, key_len;
  tensor::Tensor query, key, value;
  attention::Mask mask;
};

Result run_in_double(const Problem& problem, std::optional<Stage> stage) {
  const auto output = attention::reference_attention(
      problem.config, {problem.batch, problem.query_len, problem.key_len, problem.query.as<double>(),
                       problem.key.as<double>(), problem.value.as<double>(), problem.mask});
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

Result run_in_float(const Problem& problem, std::optional<Stage> stage) {
  Kept kept(stage);
  auto output =
      attention::exact_attention(problem.config,
                                 {problem.batch, problem.query_len, problem.key_len, problem.query.as<float>(),
                                  problem.key.as<float>(), problem.value.as<float>(), problem.mask},
                                 &kept);
  return {std::move(output.head_output), std::move(output.row_reference), std::move(output.row_sum),
          std::move(kept).take()};
}

template <class Real>
void multiply(tensor::Tensor& values, double factor) {
  for (Real& value : values.as<Real>()) value *= static_cast<Real>(factor);
}

// qk_matmul_output from the stage that shows it: the scaled product is the raw one times the scale.
void scale_raw_scores(tensor::Tensor& raw, const attention::AttentionConfig& config) {
  if (raw.dtype() == DType::f64) {
    multiply<double>(raw, config.scale ? *config.scale : 1.0 / std::sqrt(static_cast<double>(config.head_dim)));
  } else {
    multiply<float>(raw, config.effective_scale());
  }
}

attention::AttentionConfig configure(const Settings& settings, const HeadTensor& query, const HeadTensor& key,
                                     const HeadTensor& value, Inputs& inputs) {
  const size_t rank = query.view.shape().rank();
  if (key.view.shape().rank() != rank) inputs.refuse_shape("K", key.view, fmt::format("{} axes, as Q has", rank));
  if (value.view.shape().rank() != rank) inputs.refuse_shape("V", value.view, fmt::format("{} axes, as Q has", rank));
  if (key.batch != query.batch || key.dim != query.dim) {
    inputs.refuse_shape("K", key.view, fmt::format("batch {} and head size {}, as Q has", query.batch, query.dim));
  }
  if (value.batch != query.batch || value.heads != key.heads || value.len != key.len) {
    inputs.refuse_shape("V", value.view,
                        fmt::format("batch {}, {} heads and length {}, as K has", query.batch, key.heads, key.len));
  }
  attention::AttentionConfig config;
  config.num_heads = query.heads;
  config.num_kv_heads = key.heads;
  config.head_dim = query.dim;
  config.value_dim = value.dim;
  config.scale = settings.scale;
  config.causal = settings.causal ? attention::Causal::top_left : attention::Causal::none;
  config.check();
  return config;
}

}  // namespace

Outputs attention_operator(const OpRequest& request, Inputs& inputs, Attributes& attributes) {
  const Settings settings = read_settings(attributes);
  const HeadTensor query = read_heads(inputs, "Q", settings.num_heads, settings);
  const HeadTensor key = read_heads(inputs, "K", settings.num_kv_heads, settings);
  const HeadTensor value = read_heads(inputs, "V", settings.num_kv_heads, settings);
  const std::optional<tensor::TensorView> mask = inputs.find("attn_mask");
  inputs.check_all_known(kPlannedInputs);
  const size_t shown_by_default = settings.score_output ? kOutputs.size() : kOutputs.size() - 1;
  Outputs outputs(std::string(kWhere), request.outputs, kOutputs, std::span(kOutputs).first(shown_by_default),
                  kPlannedOutputs);

  const DType first = query.view.dtype(), real = real_of(first);
  Problem problem;
  problem.config = configure(settings, query, key, value, inputs);
  problem.batch = query.batch;
  problem.query_len = query.len;
  problem.key_len = key.len;
  problem.query = by_position(query, real);
  problem.key = by_position(key, real);
  problem.value = by_position(value, real);
  tensor::Tensor mask_values;
  const std::array<size_t, 4> full = {query.batch, query.heads, query.len, key.len};
  if (mask) {
    mask_values = read_mask(inputs, *mask, full, settings.opset);
    problem.mask = attention::Mask(mask_values, full);
  }

  const ScoreOutput mode = settings.score_output.value_or(ScoreOutput::scaled);
  const bool raw = mode == ScoreOutput::scaled || mode == ScoreOutput::after_soft_cap;
  std::optional<Stage> stage;
  if (outputs.wants("qk_matmul_output")) {
    stage = raw ? Stage::raw_scores : mode == ScoreOutput::after_mask ? Stage::scores : Stage::weights;
  }
  Result result = real == DType::f64 ? run_in_double(problem, stage) : run_in_float(problem, stage);
  if (stage && raw) scale_raw_scores(result.shown, problem.config);
  const bool flat = query.view.shape().rank() == 3;
  outputs.add("Y",
              flat ? std::move(result.head_output).reshaped({query.batch, query.len, query.heads * value.dim})
                   : swap_middle_axes(result.head_output),
              first);
  outputs.add("row_reference", result.row_reference, real);
  outputs.add("row_sum", result.row_sum, real);
  if (stage) outputs.add("qk_matmul_output", result.shown, first);
  return outputs;
}

}  // namespace clearhead::apps
