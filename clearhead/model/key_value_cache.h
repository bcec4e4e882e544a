// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "clearhead/attention/key_value_cache.h"
#include "clearhead/attention/rounding.h"
#include "clearhead/model/config.h"

namespace clearhead::model {

// The keys and values of all tokens that a model has read of one text, layer by layer: to read one more token costs one
// token. A token read after others has the bits of the same token read together with them, and the cache grows in
// place, a key tile at a time. Layers that see near tokens only forget those that are never seen again.
class KeyValueCache {
 public:
  // kept: what keys and values are rounded to as they are produced.
  explicit KeyValueCache(const ModelConfig& config, attention::Precision kept = attention::Precision::single);

  // Tokens read so far.
  size_t length() const { return layers_.back().key_len(); }
  attention::KeyValueCache& layer(size_t layer) { return layers_[layer]; }
  attention::Precision kept() const { return layers_.back().kept(); }
  // Forgets all tokens from length on. Throws: Error (usage) if a layer has forgotten what stood before.
  void truncate(size_t length);
  // How far all keys and values are from what they were before they were rounded.
  attention::RoundingError error() const;
  // Bytes that are kept now, and the most that tokens tokens take.
  size_t bytes() const;
  static size_t bytes(const ModelConfig& config, size_t tokens,
                      attention::Precision kept = attention::Precision::single);

 private:
  std::vector<attention::KeyValueCache> layers_;
};

}  // namespace clearhead::model
