// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "clearhead/capture/observer.h"
#include "clearhead/capture/trace.h"
#include "clearhead/format/safetensors.h"

namespace clearhead::capture {

// Sizes of the axes that tokens and heads do not decide, by the words of the stage table: {"d_model", 384}, ...
using AxisSizes = std::map<std::string_view, size_t>;

// An observer that writes what a selection names to a trace file while the run goes on, and keeps nothing: stages of
// [batch, heads, query, key] are rebuilt a block of rows at a time. The file is that which Recorder and Trace::write
// make together.
class TraceWriter : public Observer {
 public:
  // trace_info, num_kv_heads: as for Recorder. Of the selection, the run must show every stage.
  // Throws: Error as Recorder does, and if the file cannot be written or there is no room for it.
  TraceWriter(const std::filesystem::path& path, Selection selection, TraceInfo trace_info, size_t num_kv_heads,
              const AxisSizes& sizes);

  bool wants(Stage stage, size_t layer) const override;
  void observe(Stage stage, size_t layer, const tensor::TensorView& values) override;
  void observe_source(Stage stage, size_t layer, const WeightSource& source) override;

  size_t bytes() const { return bytes_; }  // of all tensors
  // The first stage and layer in which a value was NaN.
  const std::optional<std::pair<Stage, size_t>>& first_nan() const { return first_nan_; }
  // Makes the file appear.
  void commit();

 private:
  Selection selection_;
  TraceInfo info_;
  size_t bytes_ = 0;
  std::optional<std::pair<Stage, size_t>> first_nan_;
  std::map<std::pair<size_t, Stage>, size_t> places_;  // index in the file of each tensor
  std::unique_ptr<format::SafetensorsOutput> output_;
};

// Writes heads of a source (none named: all) as tensor index of a file, rebuilt on all threads, a block of rows each.
// Throws: Error if the file cannot be written.
void write_source(const WeightSource& source, std::span<const size_t> heads, format::SafetensorsOutput& output,
                  size_t index);

}  // namespace clearhead::capture
