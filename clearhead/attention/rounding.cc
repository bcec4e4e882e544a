// SPDX-License-Identifier: Apache-2.0
#include "clearhead/attention/rounding.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "clearhead/base/parallel.h"
#include "clearhead/tensor/dtype.h"

namespace clearhead::attention {
namespace {

constexpr size_t kBlock = 4096;  // numbers whose errors are added up together, whatever the number of threads

RoundingError round_block(std::span<float> numbers) {
  RoundingError error;
  for (float& number : numbers) {
    const float before = number;
    number = tensor::to_float(tensor::to_bfloat16(before));
    const double change = static_cast<double>(number) - static_cast<double>(before);
    if (!std::isfinite(change)) continue;
    error.squares += static_cast<double>(before) * static_cast<double>(before);
    error.error_squares += change * change;
  }
  return error;
}

}  // namespace

RoundingError round_to_bfloat16(std::span<float> numbers) {
  std::vector<RoundingError> errors((numbers.size() + kBlock - 1) / kBlock);
  base::parallel_for(errors.size(), [&](size_t block) {
    const size_t first = block * kBlock;
    errors[block] = round_block(numbers.subspan(first, std::min(kBlock, numbers.size() - first)));
  });
  RoundingError sum;
  for (const RoundingError& one : errors) sum.add(one);
  return sum;
}

}  // namespace clearhead::attention
