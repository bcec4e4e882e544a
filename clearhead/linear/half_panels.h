// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "clearhead/base/memory.h"
#include "clearhead/kernels/tile.h"

namespace clearhead::linear {

// The parameters of a linear map in half precision or bfloat16 as their bits, packed for the product: panels of 16
// outputs, the last one filled up with zeros. A product reads them as floats, exactly.
class HalfPanels {
 public:
  HalfPanels() = default;
  HalfPanels(size_t outputs, size_t inputs, bool bfloat16)
      : depth_(inputs), bfloat16_(bfloat16), buffer_(kernels::panel_count(outputs) * inputs * 16 * sizeof(uint16_t)) {}

  bool empty() const { return buffer_.size() == 0; }
  size_t bytes() const { return buffer_.size(); }
  bool bfloat16() const { return bfloat16_; }
  // [inputs, 16]
  uint16_t* panel(size_t index) { return reinterpret_cast<uint16_t*>(buffer_.data()) + index * depth_ * 16; }
  const uint16_t* panel(size_t index) const {
    return reinterpret_cast<const uint16_t*>(buffer_.data()) + index * depth_ * 16;
  }

  // One parameter.
  float at(size_t output, size_t input) const;
  // Panels [first, first + count) as floats. Shapes: panels [count, depth, 16].
  void unpack(size_t first, size_t count, float* panels) const;

 private:
  size_t depth_ = 0;
  bool bfloat16_ = false;
  base::AlignedBuffer buffer_;  // [panels, depth, 16]
};

}  // namespace clearhead::linear
