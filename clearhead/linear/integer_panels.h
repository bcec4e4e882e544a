// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "clearhead/base/memory.h"
#include "clearhead/tensor/split_block.h"

namespace clearhead::linear {

// The parameters of a linear map in few bits, packed for the product: panels of 16 outputs, in which a group of inputs
// shares scales. A group's bytes: 16 scales, 16 addends where the type has them (one for each output, halves where
// these are exact, else floats), then for each input 16 integers of one byte, or for each two inputs 16 bytes with the
// second's integer in the upper half. Parameter (output, input) is
//
//   scale (q - middle) + addend      each step rounded once, as tensor::decode_blocks does
//
struct IntegerPanelShape {
  tensor::SplitType type;
  size_t depth = 0;  // inputs; a multiple of type.group

  size_t scale_bytes() const { return (type.has_addend ? 2 : 1) * 16 * (type.half_scales ? 2 : sizeof(float)); }
  size_t group_bytes() const { return scale_bytes() + type.group * (type.four_bits ? 8 : 16); }
  size_t panel_bytes() const { return depth / type.group * group_bytes(); }
};

class IntegerPanels {
 public:
  IntegerPanels() = default;
  // Output i is row row_of(i) of weight [rows, inputs]. Outputs past the last are zeros.
  IntegerPanels(const tensor::BlockView& weight, size_t outputs, const std::function<size_t(size_t i)>& row_of);

  bool empty() const { return buffer_.size() == 0; }
  size_t bytes() const { return buffer_.size(); }
  const IntegerPanelShape& shape() const { return shape_; }
  const std::byte* panel(size_t index) const { return buffer_.data() + index * shape_.panel_bytes(); }

  // One parameter.
  float at(size_t output, size_t input) const;
  // Panels [first, first + count) as floats. Shapes: panels [count, depth, 16].
  void unpack(size_t first, size_t count, float* panels) const;

 private:
  IntegerPanelShape shape_ = {};
  base::AlignedBuffer buffer_;
};

}  // namespace clearhead::linear
