// SPDX-License-Identifier: Apache-2.0
#include "clearhead/capture/trace_writer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <numeric>
#include <vector>

#include "clearhead/base/interrupt.h"
#include "clearhead/base/parallel.h"
#include "clearhead/capture/recorder.h"
#include "clearhead/capture/trace_json.h"

namespace clearhead::capture {
namespace {

std::pair<size_t, Stage> key_of(Stage stage, size_t layer) {
  return {info(stage).place == Place::in_layer ? layer : 0, stage};
}

tensor::Shape shape_of(Stage stage, const TraceInfo& trace_info, const AxisSizes& sizes) {
  const size_t seq = trace_info.tokens.size();
  const AxisSizes known = {{"batch", 1},
                           {"seq", seq},
                           {"query", seq},
                           {"key", seq},
                           {"heads", trace_info.heads.size()},
                           {"kv_heads", trace_info.kv_heads().size()}};
  std::vector<size_t> shape;
  for (std::string_view word : axes(stage)) {
    const auto found = known.find(word);
    shape.push_back(found != known.end() ? found->second : sizes.at(word));
  }
  return tensor::Shape(shape);
}

}  // namespace

TraceWriter::TraceWriter(const std::filesystem::path& path, Selection selection, TraceInfo trace_info,
                         size_t num_kv_heads, const AxisSizes& sizes)
    : selection_(std::move(selection)), info_(complete_info(selection_, std::move(trace_info), num_kv_heads)) {
  const Trace empty(info_);
  info_ = empty.info();
  empty.check("trace");
  std::map<std::pair<size_t, Stage>, tensor::Shape> shapes;  // in the order of a trace
  for (Stage stage : selection_.stages) {
    if (capture::info(stage).place != Place::in_layer) shapes.emplace(key_of(stage, 0), shape_of(stage, info_, sizes));
    for (size_t layer : info_.layers) {
      if (capture::info(stage).place == Place::in_layer)
        shapes.emplace(key_of(stage, layer), shape_of(stage, info_, sizes));
    }
  }
  std::vector<format::PlannedTensor> planned;
  for (const auto& [key, shape] : shapes) {
    places_.emplace(key, planned.size());
    planned.push_back({Trace::tensor_name(key.second, key.first), tensor::DType::f32, shape});
    bytes_ += shape.elements() * sizeof(float);
  }
  output_ = std::make_unique<format::SafetensorsOutput>(path, planned, metadata_of(info_));
}

bool TraceWriter::wants(Stage stage, size_t layer) const { return selection_.includes(stage, layer); }

void TraceWriter::observe(Stage stage, size_t layer, const tensor::TensorView& values) {
  if (!wants(stage, layer)) return;
  const size_t index = places_.at(key_of(stage, layer));
  const auto is_nan = [](float value) { return std::isnan(value); };
  if (!first_nan_ && std::ranges::any_of(values.as<float>(), is_nan)) first_nan_ = {stage, layer};
  const bool whole = !capture::info(stage).head_axis || info_.heads.size() == info_.num_heads;
  if (whole) return output_->write(index, 0, values.bytes());
  output_->write(index, 0, cut_heads(stage, values, info_).bytes());
}

void TraceWriter::observe_source(Stage stage, size_t layer, const WeightSource& source) {
  if (wants(stage, layer)) write_source(source, info_.heads, *output_, places_.at(key_of(stage, layer)));
}

void TraceWriter::commit() { output_->commit(); }

void write_source(const WeightSource& source, std::span<const size_t> heads, format::SafetensorsOutput& output,
                  size_t index) {
  constexpr size_t kQueries = 32;  // of a block
  std::vector<size_t> chosen(heads.begin(), heads.end());
  if (heads.empty()) {
    chosen.resize(source.num_heads());
    std::iota(chosen.begin(), chosen.end(), size_t{0});
  }
  const size_t queries = source.query_len(), keys = source.key_len(), blocks = (queries + kQueries - 1) / kQueries;
  std::mutex mutex;
  std::exception_ptr problem;  // the first; no exception may leave the threads
  std::atomic<bool> failed = false;
  base::parallel_for(source.batch() * chosen.size() * blocks, [&](size_t unit) {
    if (failed) return;
    try {
      base::check_interrupt();
      const size_t head = unit / blocks, first = unit % blocks * kQueries, count = std::min(kQueries, queries - first);
      std::vector<float> block(count * keys);
      source.tile({head / chosen.size(), chosen[head % chosen.size()], first, count, 0, keys}, block);
      output.write(index, (head * queries + first) * keys * sizeof(float), std::as_bytes(std::span(block)));
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!problem) problem = std::current_exception();
      failed = true;
    }
  });
  if (problem) std::rethrow_exception(problem);
}

}  // namespace clearhead::capture
