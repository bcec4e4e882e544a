// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "clearhead/capture/observer.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::apps {

// Keeps one stage of a run, if one is wanted.
class Kept : public capture::Observer {
 public:
  explicit Kept(std::optional<capture::Stage> stage) : stage_(stage) {}

  bool wants(capture::Stage stage, size_t /*layer*/) const override { return stage_ == stage; }
  void observe(capture::Stage /*stage*/, size_t /*layer*/, const tensor::TensorView& values) override {
    values_ = tensor::clone(values);
  }
  tensor::Tensor take() && { return std::move(values_); }

 private:
  std::optional<capture::Stage> stage_;
  tensor::Tensor values_;
};

}  // namespace clearhead::apps
