// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/capture/stage.h"
#include "clearhead/capture/weight_source.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::capture {

// Somebody who watches a run. The run shows each stage that is wanted; it never depends on what the observer does.
// layer counts from 0; it is 0 for stages outside the layers.
class Observer {
 public:
  virtual ~Observer() = default;

  // Whether the stage is to be shown. Asked before any work that serves the observer alone.
  virtual bool wants(Stage stage, size_t layer) const = 0;

  // Shows the stage. values is valid during the call only; its shape is the stage's.
  virtual void observe(Stage stage, size_t layer, const tensor::TensorView& values) = 0;

  // Shows a stage of [batch, heads, query, key] that nobody has stored: source rebuilds what is looked at and is valid
  // during the call only. Whoever does not say otherwise sees all of it by observe.
  virtual void observe_source(Stage stage, size_t layer, const WeightSource& source);
};

}  // namespace clearhead::capture
