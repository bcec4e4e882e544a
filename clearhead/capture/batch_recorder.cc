// SPDX-License-Identifier: Apache-2.0
#include "clearhead/capture/batch_recorder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "clearhead/base/error.h"
#include "clearhead/capture/recorder.h"

namespace clearhead::capture {
namespace {

// The axis that counts tokens, or rows of queries.
size_t token_axis(Stage stage) {
  const std::vector<std::string_view> words = axes(stage);
  const auto found =
      std::ranges::find_if(words, [](std::string_view word) { return word == "seq" || word == "query"; });
  return static_cast<size_t>(found - words.begin());
}

// The elements [first, first + count) along one axis.
tensor::Tensor part_of(const tensor::TensorView& values, size_t axis, size_t first, size_t count) {
  std::vector<size_t> sizes(values.shape().sizes().begin(), values.shape().sizes().end());
  size_t outer = 1, inner = tensor::size_of(values.dtype());
  for (size_t i = 0; i < axis; ++i) outer *= sizes[i];
  for (size_t i = axis + 1; i < sizes.size(); ++i) inner *= sizes[i];
  const size_t whole = std::exchange(sizes[axis], count);
  tensor::Tensor part(values.dtype(), tensor::Shape(sizes));
  if (part.elements() == 0) return part;
  for (size_t i = 0; i < outer; ++i) {
    std::memcpy(part.bytes().data() + i * count * inner, values.bytes().data() + (i * whole + first) * inner,
                count * inner);
  }
  return part;
}

}  // namespace

BatchRecorder::BatchRecorder(Selection selection, std::vector<TraceInfo> infos, size_t num_kv_heads)
    : selection_(std::move(selection)) {
  if (const auto square = std::ranges::find_if(selection_.stages, is_square); square != selection_.stages.end()) {
    base::refuse("recorder", "stages that grow with the length of a text", base::quoted(info(*square).name),
                 "record what it is made of, and let it be rebuilt");
  }
  for (TraceInfo& one : infos) traces_.emplace_back(complete_info(selection_, std::move(one), num_kv_heads));
}

bool BatchRecorder::wants(Stage stage, size_t layer) const { return selection_.includes(stage, layer); }

void BatchRecorder::observe(Stage stage, size_t layer, const tensor::TensorView& values) {
  if (!wants(stage, layer)) return;
  const size_t axis = token_axis(stage);
  size_t first = 0;
  for (Trace& trace : traces_) {
    const size_t count = trace.info().tokens.size();
    tensor::Tensor part = part_of(values, axis, first, count);
    trace.add(stage, layer, info(stage).head_axis ? cut_heads(stage, part, trace.info()) : std::move(part));
    first += count;
  }
}

}  // namespace clearhead::capture
