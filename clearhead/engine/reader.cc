// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/reader.h"

#include <algorithm>

#include "clearhead/base/parallel.h"

namespace clearhead::engine {

size_t Reader::chunk() {
  constexpr size_t kOfThread = 128, kMost = 512;
  return std::min(kMost, kOfThread * base::num_threads());
}

Reader::Reader(const model::Transformer& transformer, size_t declared_len, linear::Compute compute,
               attention::Precision cache)
    : transformer_(transformer), declared_len_(declared_len), compute_(compute), cache_(transformer.config(), cache) {}

tensor::Tensor Reader::read(std::span<const int64_t> ids, capture::Observer* observer) {
  const size_t parts = (ids.size() + chunk() - 1) / chunk();  // nearly even: a short one would leave threads idle
  std::span<const float> hidden;
  for (size_t i = 0; i < parts; ++i) {
    const size_t first = ids.size() * i / parts, end = ids.size() * (i + 1) / parts;
    hidden = transformer_.run({.ids = ids.subspan(first, end - first),
                               .type_ids = {},
                               .declared_len = declared_len_,
                               .cache = &cache_,
                               .compute = compute_},
                              workspace_, i + 1 == parts ? observer : nullptr);
  }
  return transformer_.logits(hidden.last(transformer_.config().d_model));
}

}  // namespace clearhead::engine
