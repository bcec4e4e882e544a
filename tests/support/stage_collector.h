// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <utility>

#include "clearhead/capture/observer.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::tests {

// An observer that keeps every stage it is asked to, of all layers.
class StageCollector : public capture::Observer {
 public:
  explicit StageCollector(std::set<capture::Stage> stages) : stages_(std::move(stages)) {}

  bool wants(capture::Stage stage, size_t) const override { return stages_.contains(stage); }
  void observe(capture::Stage stage, size_t layer, const tensor::TensorView& values) override {
    seen_.insert_or_assign({stage, layer}, tensor::clone(values));
  }

  bool has(capture::Stage stage, size_t layer = 0) const { return seen_.contains({stage, layer}); }
  const tensor::Tensor& get(capture::Stage stage, size_t layer = 0) const { return seen_.at({stage, layer}); }
  size_t size() const { return seen_.size(); }

 private:
  std::set<capture::Stage> stages_;
  std::map<std::pair<capture::Stage, size_t>, tensor::Tensor> seen_;
};

}  // namespace clearhead::tests
