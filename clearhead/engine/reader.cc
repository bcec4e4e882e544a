// SPDX-License-Identifier: Apache-2.0
#include "clearhead/engine/reader.h"

#include <algorithm>

namespace clearhead::engine {

Reader::Reader(const model::Transformer& transformer, size_t declared_len, linear::Compute compute,
               attention::Precision cache)
    : transformer_(transformer), declared_len_(declared_len), compute_(compute), cache_(transformer.config(), cache) {}

tensor::Tensor Reader::read(std::span<const int64_t> ids, capture::Observer* observer) {
  std::span<const float> hidden;
  for (size_t first = 0; first < ids.size(); first += kChunk) {
    const auto chunk = ids.subspan(first, std::min(kChunk, ids.size() - first));
    const bool last = first + chunk.size() == ids.size();
    hidden = transformer_.run(
        {.ids = chunk, .type_ids = {}, .declared_len = declared_len_, .cache = &cache_, .compute = compute_},
        workspace_, last ? observer : nullptr);
  }
  return transformer_.logits(hidden.last(transformer_.config().d_model));
}

}  // namespace clearhead::engine
