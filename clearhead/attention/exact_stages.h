// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "clearhead/capture/observer.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::attention {

// The score stages of one run that somebody wants to see; those that nobody wants stay empty.
class ExactStages {
 public:
  // shape [batch, heads, query, key]. Where no sequence writes, raw scores and weights are 0 and scores -infinity.
  ExactStages(const tensor::Shape& shape, const capture::Observer* observer, size_t layer);

  bool any() const { return raw_scores || scores || kernel_scores || weights; }
  bool raw_needed() const { return raw_scores || scores; }

  // Shows everything that is wanted, in the order of the computation.
  void show(const tensor::Tensor& row_reference, const tensor::Tensor& row_sum, capture::Observer& observer,
            size_t layer) const;

  bool raw_scores = false, scores = false, kernel_scores = false, weights = false;
  tensor::Tensor raw, natural, kernel, weight;
};

}  // namespace clearhead::attention
