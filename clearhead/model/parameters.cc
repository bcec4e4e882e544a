// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/parameters.h"

namespace clearhead::model {

const linear::PackedLinear& VocabularyMap::get() const {
  const std::scoped_lock lock(shared_->mutex);
  if (shared_->pack) {
    shared_->packed = shared_->pack();
    shared_->pack = nullptr;
  }
  return shared_->packed;
}

const linear::PackedLinear* VocabularyMap::packed() const {
  if (!shared_) return nullptr;
  const std::scoped_lock lock(shared_->mutex);
  return shared_->pack ? nullptr : &shared_->packed;
}

size_t VocabularyMap::resident_bytes() const {
  const linear::PackedLinear* map = packed();
  return map == nullptr ? 0 : map->bytes();
}

EmbeddingTable tied_table(EmbeddingTable stored, VocabularyMap vocabulary) {
  const size_t rows = stored.rows();
  return {rows, [stored = std::move(stored), vocabulary = std::move(vocabulary)](size_t id, std::span<float> row) {
            const linear::PackedLinear* map = vocabulary.packed();
            if (map == nullptr) return stored.read(id, row);
            for (size_t i = 0; i < row.size(); ++i) row[i] = map->weight_at(id, i);
          }};
}

}  // namespace clearhead::model
