// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/projection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "clearhead/attention/sizes.h"
#include "clearhead/base/parallel.h"
#include "clearhead/kernels/tile.h"

namespace clearhead::attention {
namespace {

using capture::Stage;

// Sequences of vectors and the map they go through.
struct Role {
  std::string_view name;
  std::span<const float> input;  // [batch, len, in]
  size_t batch, len, heads, dim;
  const linear::PackedLinear& parameters;
};

tensor::Tensor project(const Role& role) {
  const size_t width = role.heads * role.dim;
  if (role.parameters.out_features() != width) {
    base::refuse("attention", fmt::format("a projection of {} to {} heads of {}", role.name, role.heads, role.dim),
                 fmt::format("{} outputs", role.parameters.out_features()));
  }
  check_size(role.name, {role.batch, role.len, role.parameters.in_features()}, role.input.size());
  tensor::Tensor output({role.batch, role.len, role.heads, role.dim});
  linear::linear(role.input, role.batch * role.len, role.parameters, output.as<float>());
  return output;
}

// Each sequence of values followed by the appended rows. Shapes: values [batch, len, heads, dim];
// appended [extra, heads * dim].
tensor::Tensor append(tensor::Tensor values, const tensor::Tensor& appended, std::string_view name) {
  if (appended.elements() == 0) return values;
  const tensor::Shape shape = values.shape();
  const size_t width = shape[2] * shape[3], extra = appended.elements() / width;
  check_size(name, {extra, width}, appended.elements());
  tensor::Tensor all({shape[0], shape[1] + extra, shape[2], shape[3]});
  const std::span<const float> from = std::as_const(values).as<float>(), added = appended.as<float>();
  float* to = all.as<float>().data();
  for (size_t batch = 0; batch < shape[0]; ++batch) {
    to = std::copy_n(from.data() + batch * shape[1] * width, shape[1] * width, to);
    to = std::copy_n(added.data(), added.size(), to);
  }
  return all;
}

}  // namespace

Projected project_inputs(const AttentionConfig& config, const MultiHeadParameters& parameters,
                         const MultiHeadInput& input, capture::Observer* observer, size_t layer) {
  const size_t batch = input.batch;
  Projected projected;
  projected.query =
      project({"query", input.query, batch, input.query_len, config.num_heads, config.head_dim, parameters.query});
  projected.key =
      append(project({"key", input.key, batch, input.key_len, config.num_kv_heads, config.head_dim, parameters.key}),
             parameters.appended_key, "appended_key");
  projected.value = append(
      project({"value", input.value, batch, input.key_len, config.num_kv_heads, config.value_dim, parameters.value}),
      parameters.appended_value, "appended_value");
  if (observer != nullptr) {
    if (observer->wants(Stage::query, layer)) observer->observe(Stage::query, layer, projected.query);
    if (observer->wants(Stage::key, layer)) observer->observe(Stage::key, layer, projected.key);
    if (observer->wants(Stage::value, layer)) observer->observe(Stage::value, layer, projected.value);
  }
  return projected;
}

tensor::Tensor head_contributions(const tensor::Tensor& head_output, const linear::PackedLinear& output) {
  constexpr size_t kRows = 48;  // that are worked on together
  const tensor::Shape& shape = head_output.shape();
  const size_t rows = shape[0] * shape[1], heads = shape[2], value_dim = shape[3], d_model = output.out_features();
  const size_t width = kernels::panel_count(d_model) * kernels::kPanelWidth, blocks = (rows + kRows - 1) / kRows;
  tensor::Tensor contributions({shape[0], shape[1], heads, d_model});
  std::vector<std::vector<float>> scratch(base::num_threads(), std::vector<float>(kRows * width));
  const float* values = head_output.as<float>().data();
  float* result = contributions.as<float>().data();
  base::parallel_for(blocks * heads, [&](size_t unit) {
    const size_t head = unit % heads, first = unit / heads * kRows, count = std::min(kRows, rows - first);
    float* block = scratch[base::thread_index()].data();
    kernels::tile_product({.left = values + (first * heads + head) * value_dim,
                           .left_stride = heads * value_dim,
                           .panels = output.panels().data() + head * value_dim * kernels::kPanelWidth,
                           .panel_stride = heads * value_dim * kernels::kPanelWidth,
                           .output = block,
                           .output_stride = width,
                           .rows = count,
                           .depth = value_dim,
                           .num_panels = width / kernels::kPanelWidth});
    for (size_t row = 0; row < count; ++row) {
      std::copy_n(block + row * width, d_model, result + ((first + row) * heads + head) * d_model);
    }
  });
  return contributions;
}

}  // namespace clearhead::attention
