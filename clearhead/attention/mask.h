// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "clearhead/tensor/tensor.h"

namespace clearhead::attention {

// What the caller brings to forbid or favour keys, beside the causal rule.
//   boolean   U8 or BOOL: not 0 = may attend
//   floating  added to the scaled score in natural units; -1e30 or below (-inf too) = may not be seen
// Every axis is the full size or 1 (broadcast). No mask: default-constructed.
class Mask {
 public:
  Mask() = default;

  // values is kept by reference and converted at reading; rank 4 [batch, heads, query, key], each axis of full size
  // or 1. BOOL, U8, or a floating type.
  // Throws: Error (usage) for another rank, dtype or an axis that does not broadcast to full.
  Mask(const tensor::TensorView& values, std::array<size_t, 4> full);

  bool present() const { return present_; }
  // Whether no bias of it is other than 0.
  bool boolean() const { return boolean_; }

  // One row: visible[j] = 0 or 1 and bias[j] (0 for boolean masks) for the keys [first, first + visible.size()).
  // A bias of -1e30 or below is turned into visible 0 and bias 0.
  void read_row(std::array<size_t, 3> batch_head_query, size_t first, std::span<uint8_t> visible,
                std::span<float> bias) const;
  // The same for a reader in double: a bias of type F64 is not rounded.
  void read_row(std::array<size_t, 3> batch_head_query, size_t first, std::span<uint8_t> visible,
                std::span<double> bias) const;

 private:
  template <class Real>
  void read(std::array<size_t, 3> batch_head_query, size_t first, std::span<uint8_t> visible,
            std::span<Real> bias) const;

  bool present_ = false;
  bool boolean_ = false;
  tensor::TensorView values_;
  std::array<size_t, 4> strides_{};  // in elements; 0 on an axis that is broadcast
};

}  // namespace clearhead::attention
