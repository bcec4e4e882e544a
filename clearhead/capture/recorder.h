// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/capture/observer.h"
#include "clearhead/capture/trace.h"

namespace clearhead::capture {

// An observer that keeps copies of what a selection names; heads outside the selection are cut from the head axis. Of
// stages that count kv heads, those are kept that the selected heads read (TraceInfo::kv_heads).
class Recorder : public Observer {
 public:
  // trace_info is completed with version, num_kv_heads and the layers and heads that are kept; num_kv_heads divides
  // num_heads.
  // Throws: Error (usage) if it does not, or if the selection names a layer or head that is not there.
  Recorder(Selection selection, TraceInfo trace_info, size_t num_kv_heads);

  bool wants(Stage stage, size_t layer) const override;
  void observe(Stage stage, size_t layer, const tensor::TensorView& values) override;
  void observe_source(Stage stage, size_t layer, const WeightSource& source) override;

  // The finished trace; the recorder is empty afterwards.
  Trace take() &&;

 private:
  Selection selection_;
  Trace trace_;
};

// trace_info completed as a recorder does. Throws: as Recorder.
TraceInfo complete_info(const Selection& selection, TraceInfo trace_info, size_t num_kv_heads);

// The recorded heads of a stage that counts heads. Shapes: values with all heads of the model.
tensor::Tensor cut_heads(Stage stage, const tensor::TensorView& values, const TraceInfo& trace_info);

}  // namespace clearhead::capture
