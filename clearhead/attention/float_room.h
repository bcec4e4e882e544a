// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "clearhead/base/memory.h"
#include "clearhead/kernels/bfloat16_tile.h"

namespace clearhead::attention {

// Room for floats, or for as many pairs, that only ever grows; what stood in it may be lost when it does.
class FloatRoom {
 public:
  float* at_least(size_t count) {
    if (buffer_.size() < count * sizeof(float)) buffer_ = base::AlignedBuffer(count * sizeof(float));
    return data();
  }
  std::span<float> span(size_t count) { return {at_least(count), count}; }
  float* data() { return reinterpret_cast<float*>(buffer_.data()); }
  kernels::Pair* pairs() { return reinterpret_cast<kernels::Pair*>(buffer_.data()); }

 private:
  base::AlignedBuffer buffer_;
};

}  // namespace clearhead::attention
