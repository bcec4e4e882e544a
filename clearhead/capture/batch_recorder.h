// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "clearhead/capture/observer.h"
#include "clearhead/capture/trace.h"

namespace clearhead::capture {

// A recorder of a run over several texts that stand behind each other: each gets a trace of its own, with the values
// that it would have alone.
class BatchRecorder : public Observer {
 public:
  // One entry of infos a text, in the order of the run; selection and num_kv_heads as for Recorder. Stages of
  // [batch, heads, query, key] are not kept.
  // Throws: Error as Recorder does, and if the selection names such a stage.
  BatchRecorder(Selection selection, std::vector<TraceInfo> infos, size_t num_kv_heads);

  bool wants(Stage stage, size_t layer) const override;
  void observe(Stage stage, size_t layer, const tensor::TensorView& values) override;

  // The finished traces; the recorder is empty afterwards.
  std::vector<Trace> take() && { return std::move(traces_); }

 private:
  Selection selection_;
  std::vector<Trace> traces_;  // [texts]
};

}  // namespace clearhead::capture
