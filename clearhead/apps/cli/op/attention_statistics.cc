// SPDX-License-Identifier: Apache-2.0
#include "clearhead/apps/cli/op/attention_statistics.h"

#include <fmt/format.h>

#include <algorithm>

#include "clearhead/apps/cli/op/attention_problem.h"
#include "clearhead/attention/fused.h"
#include "clearhead/attention/received.h"
#include "clearhead/base/error.h"

namespace clearhead::apps {
namespace {

using tensor::DType;

constexpr std::string_view kWhere = "op attention";

// Cells along one side of a map.
constexpr size_t kMostCells = 4096;

size_t read_cells(Attributes& attributes, const std::string& name, size_t otherwise) {
  const size_t cells = attributes.count(name).value_or(otherwise);
  if (cells > kMostCells) {
    base::refuse(kWhere, fmt::format("attribute {} from 1 to {}", name, kMostCells), fmt::format("{}", cells));
  }
  return cells;
}

template <class Element, class Values>
void add(Outputs& outputs, std::string_view name, const Values& values, tensor::Shape shape, DType type) {
  tensor::Tensor tensor(type, std::move(shape));
  std::ranges::transform(values, tensor.as<Element>().begin(), [](auto value) { return static_cast<Element>(value); });
  outputs.add(name, tensor, type);
}

attention::RowStatistics wanted_statistics(const AttentionProblem& problem, const StatisticSettings& settings,
                                           const Outputs& outputs) {
  attention::RowStatistics statistics;
  if (outputs.wants("top_weights") || outputs.wants("top_keys")) statistics.top = settings.top;
  if (outputs.wants("map_sum") || outputs.wants("map_maximum")) {
    statistics.overview = attention::OverviewBins{settings.map_queries, settings.map_keys};
  }
  if (!outputs.wants("group_mass")) return statistics;
  if (problem.key_groups.empty()) base::refuse(kWhere, "input key_groups for output group_mass", "none");
  for (const std::vector<size_t>& keys : problem.key_groups) statistics.groups.push_back({.keys = {keys}});
  return statistics;
}

}  // namespace

StatisticSettings read_statistic_settings(Attributes& attributes) {
  StatisticSettings settings;
  settings.top = attributes.count("top_k").value_or(settings.top);
  if (settings.top > kernels::kMostTop) {
    base::refuse(kWhere, fmt::format("attribute top_k from 1 to {}", kernels::kMostTop),
                 fmt::format("{}", settings.top));
  }
  settings.map_queries = read_cells(attributes, "map_queries", settings.map_queries);
  settings.map_keys = read_cells(attributes, "map_keys", settings.map_keys);
  return settings;
}

std::vector<std::vector<size_t>> read_key_groups(Inputs& inputs, size_t key_len) {
  const auto view = inputs.find("key_groups");
  if (!view) return {};
  if (view->dtype() != DType::bool_) {
    base::refuse(kWhere, "key_groups of type BOOL", std::string(tensor::name_of(view->dtype())));
  }
  if (view->shape().rank() != 2 || view->shape()[1] != key_len) {
    inputs.refuse_shape("key_groups", *view, fmt::format("[groups, {}]", key_len));
  }
  std::vector<std::vector<size_t>> groups(view->shape()[0]);
  for (size_t g = 0; g < groups.size(); ++g) {
    for (size_t key = 0; key < key_len; ++key) {
      if (view->as<bool>()[g * key_len + key]) groups[g].push_back(key);
    }
  }
  return groups;
}

void add_statistics(const AttentionProblem& problem, const StatisticSettings& settings, Outputs& outputs) {
  const auto wanted =
      std::ranges::find_if(kStatisticOutputs, [&](std::string_view name) { return outputs.wants(name); });
  if (wanted == std::end(kStatisticOutputs)) return;
  if (problem.query.dtype() == DType::f64) {
    base::refuse(kWhere, fmt::format("a run in float for output {}", *wanted), "one in double");
  }
  attention::RowStatistics found = wanted_statistics(problem, settings, outputs);
  const attention::AttentionInput input = float_input(problem);
  const attention::AttentionOutput output = attention::fused_attention(problem.config, input, &found);
  const size_t batch = problem.batch, heads = problem.config.num_heads, len = problem.query_len;
  const tensor::Shape rows{batch, heads, len}, top{batch, heads, len, found.top};
  add<float>(outputs, "entropy", found.entropy, rows, DType::f32);
  add<float>(outputs, "distance", found.mean_distance, rows, DType::f32);
  add<float>(outputs, "top_weights", found.top_weight, top, DType::f32);
  std::vector<int64_t> keys(found.top_key.size());
  std::ranges::transform(found.top_key, keys.begin(),
                         [](uint32_t key) { return key == kernels::kNoKey ? -1 : int64_t{key}; });
  add<int64_t>(outputs, "top_keys", keys, top, DType::i64);
  add<float>(outputs, "group_mass", found.group_mass, {batch, heads, len, found.groups.size()}, DType::f32);
  if (found.overview) {
    const tensor::Shape cells{batch, heads, found.overview->queries, found.overview->keys};
    add<float>(outputs, "map_sum", found.overview_sum, cells, DType::f32);
    add<float>(outputs, "map_maximum", found.overview_maximum, cells, DType::f32);
  }
  if (!outputs.wants("received")) return;
  tensor::Tensor received({batch, heads, problem.key_len});
  attention::attention_received(problem.config, input, output.row_reference.as<float>(), output.row_sum.as<float>(),
                                received.as<float>());
  outputs.add("received", received, DType::f32);
}

}  // namespace clearhead::apps
