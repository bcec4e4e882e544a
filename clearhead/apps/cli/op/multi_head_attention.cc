// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/multi_head_attention.h"

#include <fmt/format.h>

#include <array>

#include "clearhead/apps/cli/op/kept.h"
#include "clearhead/apps/cli/op/multi_head_mask.h"
#include "clearhead/apps/cli/op/multi_head_parameters.h"
#include "clearhead/apps/cli/op/operators.h"
#include "clearhead/base/error.h"

namespace clearhead::apps {
namespace {

using tensor::DType;
using tensor::Tensor;
using tensor::TensorView;

constexpr std::string_view kWhere = "op multi_head_attention";
constexpr std::array<std::string_view, 2> kOutputs = {"attn_output", "attn_output_weights"};

struct Settings {
  size_t num_heads = 1;
  bool batch_first = false, add_zero = false, causal = false, average = false;
  attention::Split split = attention::Split::projection;
};

Settings read_settings(Attributes& attributes) {
  Settings settings;
  const auto num_heads = attributes.count("num_heads");
  settings.batch_first = attributes.flag("batch_first").value_or(false);
  settings.add_zero = attributes.flag("add_zero_attn").value_or(false);
  settings.causal = attributes.flag("is_causal").value_or(false);
  settings.average = attributes.flag("average_attn_weights").value_or(false);
  const std::string split = attributes.text("split").value_or("projection");
  attributes.check_all_known();
  if (!num_heads) base::refuse(kWhere, "an attribute num_heads", "none");
  settings.num_heads = *num_heads;
  if (split == "input") {
    settings.split = attention::Split::input;
  } else if (split != "projection") {
    base::refuse(kWhere, R"(attribute split to be "projection" or "input")", base::quoted(split));
  }
  return settings;
}

// Swaps the first two axes of [a, b, width].
Tensor swap_first_axes(Tensor values) {
  const tensor::Shape shape = values.shape();
  return swap_middle_axes(std::move(values).reshaped({1, shape[0], shape[1], shape[2]}))
      .reshaped({shape[1], shape[0], shape[2]});
}

// A sequence of vectors as [batch, len, width], whatever the layout of the file.
Tensor read_sequence(Inputs& inputs, const std::string& name, size_t rank, const Settings& settings, DType real) {
  const TensorView view = inputs.required_floating(name);
  const tensor::Shape& shape = view.shape();
  if (shape.rank() != rank || rank < 2 || rank > 3) {
    inputs.refuse_shape(name, view,
                        rank == 2              ? "[len, width], as query has no batch"
                        : settings.batch_first ? "[batch, len, width] (or [len, width] without a batch)"
                                               : "[len, batch, width] (or [len, width] without a batch)");
  }
  Tensor values = to_real(view, real);
  if (rank == 2) return std::move(values).reshaped({1, shape[0], shape[1]});
  return settings.batch_first ? std::move(values) : swap_first_axes(std::move(values));
}

struct Problem {
  attention::AttentionConfig config;
  Tensor query, key, value;  // [batch, len, width]
  Tensor mask_values;
  attention::Mask mask;
  ModuleParameters parameters;

  size_t batch() const { return query.shape()[0]; }
  size_t query_len() const { return query.shape()[1]; }
  size_t key_len() const { return key.shape()[1]; }
  size_t all_keys() const { return key_len() + parameters.appended; }
};

struct Result {
  Tensor output;   // [batch, query_len, d_model]
  Tensor weights;  // [batch, num_heads, query_len, all keys], if wanted
};

Result run_in_float(const Problem& problem, bool weights) {
  Kept kept(weights ? std::optional(capture::Stage::weights) : std::nullopt);
  auto output = attention::multi_head_attention(
      problem.config, pack_parameters(problem.parameters),
      {problem.batch(), problem.query_len(), problem.key_len(), problem.query.as<float>(), problem.key.as<float>(),
       problem.value.as<float>(), problem.mask},
      &kept);
  return {std::move(output.attention_output), std::move(kept).take()};
}

Result run_in_double(const Problem& problem) {
  const auto output = attention::reference_multi_head_attention(
      problem.config, reference_parameters(problem.parameters),
      {problem.batch(), problem.query_len(), problem.key_len(), problem.query.as<double>(), problem.key.as<double>(),
       problem.value.as<double>(), problem.mask});
  return {from_doubles(output.attention_output, problem.query.shape()),
          from_doubles(output.attention.weights,
                       {problem.batch(), problem.config.num_heads, problem.query_len(), problem.all_keys()})};
}

template <class Real>
Tensor average_heads(const Tensor& weights) {
  const tensor::Shape& shape = weights.shape();
  const size_t plane = shape[2] * shape[3];
  Tensor mean(weights.dtype(), {shape[0], shape[2], shape[3]});
  for (size_t batch = 0; batch < shape[0]; ++batch) {
    for (size_t i = 0; i < plane; ++i) {
      double sum = 0;
      for (size_t head = 0; head < shape[1]; ++head) {
        sum += weights.as<Real>()[(batch * shape[1] + head) * plane + i];
      }
      mean.as<Real>()[batch * plane + i] = static_cast<Real>(sum / static_cast<double>(shape[1]));
    }
  }
  return mean;
}

// The weights as the module gives them: averaged if asked for, without a batch if there was none.
Tensor shape_weights(Tensor weights, bool average, bool batched) {
  if (average) {
    weights = weights.dtype() == DType::f64 ? average_heads<double>(weights) : average_heads<float>(weights);
  }
  if (batched) return weights;
  const auto sizes = weights.shape().sizes();
  tensor::Shape unbatched(std::vector<size_t>(sizes.begin() + 1, sizes.end()));
  return std::move(weights).reshaped(std::move(unbatched));
}

void read_masks(Inputs& inputs, const Settings& settings, bool batched, Problem& problem) {
  const ModuleSizes sizes{problem.batch(), settings.num_heads, problem.query_len(), problem.key_len(),
                          problem.parameters.appended};
  const ModuleMasks masks{inputs.find("attn_mask"), inputs.find("key_padding_mask"), settings.causal};
  if (masks.padding) {
    inputs.check_shape("key_padding_mask", *masks.padding,
                       batched ? tensor::Shape{sizes.batch, sizes.key_len} : tensor::Shape{sizes.key_len},
                       batched ? "[batch, key]" : "[key]");
  }
  if (!masks.attention && !masks.padding && !masks.causal) return;
  problem.mask_values = combine_masks(inputs, masks, sizes, problem.query.dtype());
  problem.mask = attention::Mask(problem.mask_values,
                                 {sizes.batch, sizes.num_heads, sizes.query_len, sizes.key_len + sizes.appended});
}

Problem read_problem(Inputs& inputs, const Settings& settings, size_t rank, DType real) {
  Problem problem;
  problem.query = read_sequence(inputs, "query", rank, settings, real);
  problem.key = read_sequence(inputs, "key", rank, settings, real);
  problem.value = read_sequence(inputs, "value", rank, settings, real);
  const size_t d_model = problem.query.shape()[2];
  if (d_model == 0 || d_model % settings.num_heads != 0) {
    base::refuse(kWhere, fmt::format("a query whose width is a multiple of num_heads = {}", settings.num_heads),
                 fmt::format("width {}", d_model));
  }
  if (problem.key.shape()[0] != problem.batch()) {
    inputs.refuse_shape("key", inputs.required("key"), fmt::format("batch {}, as query has", problem.batch()));
  }
  if (problem.value.shape()[0] != problem.batch() || problem.value.shape()[1] != problem.key_len()) {
    inputs.refuse_shape("value", inputs.required("value"),
                        fmt::format("batch {} and length {}, as key has", problem.batch(), problem.key_len()));
  }
  problem.parameters = read_module_parameters(inputs,
                                              {d_model, problem.key.shape()[2], problem.value.shape()[2],
                                               settings.num_heads, settings.split, settings.add_zero},
                                              real);
  problem.config.num_heads = problem.config.num_kv_heads = settings.num_heads;
  problem.config.head_dim = problem.config.value_dim = d_model / settings.num_heads;
  return problem;
}

}  // namespace

Outputs multi_head_attention_operator(const OpRequest& request, Inputs& inputs, Attributes& attributes) {
  const Settings settings = read_settings(attributes);
  const TensorView query = inputs.required_floating("query");
  const size_t rank = query.shape().rank();
  const bool batched = rank == 3;
  const DType real = real_of(query.dtype());
  Problem problem = read_problem(inputs, settings, rank, real);
  read_masks(inputs, settings, batched, problem);
  inputs.check_all_known();
  Outputs outputs(std::string(kWhere), request.outputs, kOutputs, kOutputs);

  const bool weights = outputs.wants("attn_output_weights");
  Result result = real == DType::f64 ? run_in_double(problem) : run_in_float(problem, weights);
  Tensor output = batched && !settings.batch_first ? swap_first_axes(std::move(result.output))
                                                   : std::move(result.output).reshaped(query.shape());
  outputs.add("attn_output", output, query.dtype());
  if (weights) {
    outputs.add("attn_output_weights", shape_weights(std::move(result.weights), settings.average, batched),
                query.dtype());
  }
  return outputs;
}

}  // namespace clearhead::apps
