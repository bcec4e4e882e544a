// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "clearhead/attention/rounding.h"
#include "clearhead/capture/observer.h"
#include "clearhead/linear/linear.h"
#include "clearhead/model/key_value_cache.h"
#include "clearhead/model/transformer.h"
#include "clearhead/model/workspace.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::engine {

// A model that reads one text part by part and keeps its keys and values. declared_len: tokens that the text has at
// most, for positions that depend on it (model::ModelInput). The transformer must outlive it.
class Reader {
 public:
  // Tokens that are read together at most: enough for all threads, no more, as each takes room while it is read.
  static size_t chunk();

  Reader(const model::Transformer& transformer, size_t declared_len, linear::Compute compute = linear::Compute::single,
         attention::Precision cache = attention::Precision::single);

  model::KeyValueCache& cache() { return cache_; }

  // Logits of what follows ids, which follow what was read before: [1, 1, vocab]. The observer, or nullptr, watches the
  // last chunk() of them or fewer. Shapes: ids [at least 1]. Throws: Error as Transformer::run.
  tensor::Tensor read(std::span<const int64_t> ids, capture::Observer* observer = nullptr);

 private:
  const model::Transformer& transformer_;
  size_t declared_len_;
  linear::Compute compute_;
  model::KeyValueCache cache_;
  model::Workspace workspace_;
};

}  // namespace clearhead::engine
