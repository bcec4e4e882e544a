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

size_t VocabularyMap::resident_bytes() const {
  if (!shared_) return 0;
  const std::scoped_lock lock(shared_->mutex);
  return shared_->pack ? 0 : shared_->packed.bytes();
}

}  // namespace clearhead::model
