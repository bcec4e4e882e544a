// SPDX-License-Identifier: Apache-2.0
#include "clearhead/capture/recorder.h"

#include <fmt/format.h>

#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/base/error.h"

namespace clearhead::capture {
namespace {

std::vector<size_t> all_below(size_t count) {
  std::vector<size_t> indices(count);
  std::iota(indices.begin(), indices.end(), size_t{0});
  return indices;
}

void check_indices(std::string_view what, const std::vector<size_t>& indices, size_t limit) {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < limit && (i == 0 || indices[i] > indices[i - 1])) continue;
    base::refuse("recorder", fmt::format("{} below {} that rise", what, limit), fmt::format("{}", indices[i]));
  }
}

// Copies what kept names along one axis. Shapes: values [outer, axis, inner]; result [outer, kept, inner].
tensor::Tensor cut(const tensor::TensorView& values, size_t axis, const std::vector<size_t>& kept) {
  std::vector<size_t> sizes(values.shape().sizes().begin(), values.shape().sizes().end());
  const size_t count = sizes[axis];
  size_t outer = 1, inner = tensor::size_of(values.dtype());
  for (size_t i = 0; i < axis; ++i) outer *= sizes[i];
  for (size_t i = axis + 1; i < sizes.size(); ++i) inner *= sizes[i];
  sizes[axis] = kept.size();
  tensor::Tensor result(values.dtype(), tensor::Shape(std::move(sizes)));
  if (result.elements() == 0) return result;
  std::byte* to = result.bytes().data();
  for (size_t i = 0; i < outer; ++i) {
    for (size_t index : kept) {
      std::memcpy(to, values.bytes().data() + (i * count + index) * inner, inner);
      to += inner;
    }
  }
  return result;
}

}  // namespace

TraceInfo complete_info(const Selection& selection, TraceInfo trace_info, size_t num_kv_heads) {
  trace_info.num_kv_heads = num_kv_heads;
  if (num_kv_heads == 0 || trace_info.num_heads % num_kv_heads != 0) {
    base::refuse("recorder", "num_kv_heads that divides num_heads",
                 fmt::format("{} and {}", num_kv_heads, trace_info.num_heads));
  }
  trace_info.layers = selection.layers ? *selection.layers : all_below(trace_info.num_layers);
  trace_info.heads = selection.heads ? *selection.heads : all_below(trace_info.num_heads);
  check_indices("layers", trace_info.layers, trace_info.num_layers);
  check_indices("heads", trace_info.heads, trace_info.num_heads);
  return trace_info;
}

tensor::Tensor cut_heads(Stage stage, const tensor::TensorView& values, const TraceInfo& trace_info) {
  const size_t axis = *info(stage).head_axis;
  return cut(values, axis, axes(stage)[axis] == "kv_heads" ? trace_info.kv_heads() : trace_info.heads);
}

Recorder::Recorder(Selection selection, TraceInfo trace_info, size_t num_kv_heads)
    : selection_(std::move(selection)), trace_(complete_info(selection_, std::move(trace_info), num_kv_heads)) {}

bool Recorder::wants(Stage stage, size_t layer) const { return selection_.includes(stage, layer); }

void Recorder::observe(Stage stage, size_t layer, const tensor::TensorView& values) {
  if (!wants(stage, layer)) return;
  trace_.add(stage, layer, info(stage).head_axis ? cut_heads(stage, values, trace_.info()) : tensor::clone(values));
}

void Recorder::observe_source(Stage stage, size_t layer, const WeightSource& source) {
  if (wants(stage, layer)) trace_.add(stage, layer, source.all(trace_.info().heads));
}

Trace Recorder::take() && { return std::move(trace_); }

}  // namespace clearhead::capture
