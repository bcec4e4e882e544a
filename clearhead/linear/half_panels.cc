// SPDX-License-Identifier: Apache-2.0
#include "clearhead/linear/half_panels.h"

#include "clearhead/kernels/widen.h"
#include "clearhead/tensor/dtype.h"

namespace clearhead::linear {

float HalfPanels::at(size_t output, size_t input) const {
  const uint16_t bits =
      panel(output / kernels::kPanelWidth)[input * kernels::kPanelWidth + output % kernels::kPanelWidth];
  return bfloat16_ ? tensor::to_float(tensor::BFloat16{bits}) : tensor::to_float(tensor::Half{bits});
}

void HalfPanels::unpack(size_t first, size_t count, float* panels) const {
  const std::span<const uint16_t> bits(panel(first), count * depth_ * kernels::kPanelWidth);
  bfloat16_ ? kernels::widen_bfloat16(bits, panels) : kernels::widen_halves(bits, panels);
}

}  // namespace clearhead::linear
