// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "clearhead/attention/multi_head_attention.h"
#include "clearhead/model/config.h"

namespace clearhead::model {

// The keys and values of all tokens that a model has read of one text, layer by layer: to read one more token costs one
// token. A token read after others has the bits of the same token read together with them.
class KeyValueCache {
 public:
  // Room for max_tokens is taken at once; more are possible and are copied then.
  explicit KeyValueCache(const ModelConfig& config, size_t max_tokens = 0);

  // Tokens read so far.
  size_t length() const;
  attention::PastKeys& layer(size_t layer) { return layers_[layer]; }
  // Bytes that max_tokens tokens take.
  static size_t bytes(const ModelConfig& config, size_t max_tokens);

 private:
  std::vector<attention::PastKeys> layers_;
  size_t key_width_;
};

}  // namespace clearhead::model
