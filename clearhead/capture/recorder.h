// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/capture/observer.h"
#include "clearhead/capture/trace.h"

namespace clearhead::capture {

// An observer that keeps copies of what a selection names; heads outside the selection are cut from the head axis.
class Recorder : public Observer {
 public:
  // trace_info is completed with the layers and heads that are kept; num_kv_heads divides num_heads.
  Recorder(Selection selection, TraceInfo trace_info, size_t num_kv_heads);

  bool wants(Stage stage, size_t layer) const override;
  void observe(Stage stage, size_t layer, const tensor::TensorView& values) override;

  // The finished trace; the recorder is empty afterwards.
  Trace take() &&;

 private:
  Selection selection_;
  size_t num_kv_heads_;
  Trace trace_;
};

}  // namespace clearhead::capture
