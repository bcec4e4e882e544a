// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>

#include "clearhead/capture/observer.h"
#include "clearhead/tensor/shape.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::capture {

// Shows stages of one layer to somebody who may not be there. Costs nothing where nobody looks.
struct Watch {
  Observer* observer = nullptr;
  size_t layer = 0;

  bool wants(Stage stage) const { return observer != nullptr && observer->wants(stage, layer); }

  // Shapes: values as shape says.
  void show(Stage stage, std::initializer_list<size_t> shape, std::span<const float> values) const {
    if (!wants(stage)) return;
    observer->observe(stage, layer, {tensor::DType::f32, tensor::Shape(shape), std::as_bytes(values)});
  }
};

}  // namespace clearhead::capture
