// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/op/multi_head_parameters.h"

#include <algorithm>
#include <cstring>

#include "clearhead/base/error.h"

namespace clearhead::apps {
namespace {

using tensor::DType;
using tensor::Tensor;
using tensor::TensorView;

constexpr std::string_view kWhere = "op multi_head_attention";

// Part number part of the three equal parts along the first axis.
TensorView third(const TensorView& view, size_t part, tensor::Shape shape) {
  const size_t bytes = view.bytes().size() / 3;
  return {view.dtype(), std::move(shape), view.bytes().subspan(part * bytes, bytes)};
}

// The three weights out of in_proj_weight.
void read_joint_weight(const Inputs& inputs, const TensorView& joint, const ModuleLayout& layout, DType real,
                       std::array<ModuleProjection*, 3> into) {
  const size_t d_model = layout.d_model, head_dim = d_model / layout.num_heads;
  if (layout.key_width != d_model || layout.value_width != d_model) {
    base::refuse(kWhere, "q_proj_weight, k_proj_weight and v_proj_weight where key or value are not as wide as query",
                 "in_proj_weight");
  }
  const bool squares = layout.split == attention::Split::input;
  if (squares) {
    inputs.check_shape("in_proj_weight", joint, {3, layout.num_heads, head_dim, head_dim},
                       "[3, num_heads, head_dim, head_dim]");
  } else {
    inputs.check_shape("in_proj_weight", joint, {3 * d_model, d_model}, "[3 * d_model, d_model]");
  }
  for (size_t part = 0; part < 3; ++part) {
    if (squares) {
      const TensorView view = third(joint, part, {layout.num_heads, head_dim, head_dim});
      into[part]->weight = attention::block_diagonal(to_real(view, real));
    } else {
      into[part]->weight = to_real(third(joint, part, {d_model, d_model}), real);
    }
  }
}

void read_weights(Inputs& inputs, const ModuleLayout& layout, DType real, std::array<ModuleProjection*, 3> into) {
  const std::array<std::string, 3> names = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
  const std::array<size_t, 3> widths = {layout.d_model, layout.key_width, layout.value_width};
  if (const auto joint = inputs.find_floating("in_proj_weight")) {
    for (const std::string& name : names) {
      if (inputs.find(name)) base::refuse(kWhere, "in_proj_weight alone", "in_proj_weight and " + name);
    }
    return read_joint_weight(inputs, *joint, layout, real, into);
  }
  if (layout.split == attention::Split::input || !inputs.find(names[0])) inputs.required("in_proj_weight");
  for (size_t part = 0; part < 3; ++part) {
    const TensorView view = inputs.required_floating(names[part]);
    inputs.check_shape(names[part], view, {layout.d_model, widths[part]}, "[d_model, width of the input]");
    into[part]->weight = to_real(view, real);
  }
}

// bias_k and bias_v, then a key and a value of zeros: as the module appends them.
void read_appended(Inputs& inputs, const ModuleLayout& layout, DType real, ModuleParameters& parameters) {
  const auto key = inputs.find_floating("bias_k"), value = inputs.find_floating("bias_v");
  if (key.has_value() != value.has_value()) {
    base::refuse(kWhere, "bias_k and bias_v together", key ? "bias_k alone" : "bias_v alone");
  }
  parameters.appended = (key ? 1 : 0) + (layout.add_zero ? 1 : 0);
  parameters.appended_key = Tensor(real, {parameters.appended, layout.d_model});
  parameters.appended_value = Tensor(real, {parameters.appended, layout.d_model});
  if (!key) return;
  inputs.check_shape("bias_k", *key, {1, 1, layout.d_model}, "[1, 1, d_model]");
  inputs.check_shape("bias_v", *value, {1, 1, layout.d_model}, "[1, 1, d_model]");
  const auto copy = [real](const TensorView& from, Tensor& to) {
    const Tensor numbers = to_real(from, real);
    std::copy(numbers.bytes().begin(), numbers.bytes().end(), to.bytes().begin());
  };
  copy(*key, parameters.appended_key);
  copy(*value, parameters.appended_value);
}

linear::PackedLinear pack(const ModuleProjection& projection) {
  return linear::PackedLinear(projection.weight,
                              projection.has_bias ? std::optional<TensorView>(projection.bias) : std::nullopt);
}

std::vector<double> doubles(const Tensor& values) { return {values.as<double>().begin(), values.as<double>().end()}; }

attention::ReferenceProjection reference(const ModuleProjection& projection) {
  return {doubles(projection.weight), projection.has_bias ? doubles(projection.bias) : std::vector<double>()};
}

}  // namespace

ModuleParameters read_module_parameters(Inputs& inputs, const ModuleLayout& layout, DType real) {
  ModuleParameters parameters;
  const std::array<ModuleProjection*, 3> roles = {&parameters.query, &parameters.key, &parameters.value};
  read_weights(inputs, layout, real, roles);
  if (const auto bias = inputs.find_floating("in_proj_bias")) {
    inputs.check_shape("in_proj_bias", *bias, {3 * layout.d_model}, "[3 * d_model]");
    for (size_t part = 0; part < 3; ++part) {
      roles[part]->bias = to_real(third(*bias, part, {layout.d_model}), real);
      roles[part]->has_bias = true;
    }
  }
  const TensorView output = inputs.required_floating("out_proj.weight");
  inputs.check_shape("out_proj.weight", output, {layout.d_model, layout.d_model}, "[d_model, d_model]");
  parameters.output.weight = to_real(output, real);
  if (const auto bias = inputs.find_floating("out_proj.bias")) {
    inputs.check_shape("out_proj.bias", *bias, {layout.d_model}, "[d_model]");
    parameters.output.bias = to_real(*bias, real);
    parameters.output.has_bias = true;
  }
  read_appended(inputs, layout, real, parameters);
  return parameters;
}

attention::MultiHeadParameters pack_parameters(const ModuleParameters& parameters) {
  return {pack(parameters.query),
          pack(parameters.key),
          pack(parameters.value),
          pack(parameters.output),
          tensor::clone(parameters.appended_key),
          tensor::clone(parameters.appended_value)};
}

attention::ReferenceParameters reference_parameters(const ModuleParameters& parameters) {
  return {reference(parameters.query),  reference(parameters.key),        reference(parameters.value),
          reference(parameters.output), doubles(parameters.appended_key), doubles(parameters.appended_value)};
}

}  // namespace clearhead::apps
