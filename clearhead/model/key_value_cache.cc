// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/key_value_cache.h"

#include <array>
#include <limits>

#include "clearhead/base/checked.h"

namespace clearhead::model {

KeyValueCache::KeyValueCache(const ModelConfig& config, size_t max_tokens)
    : layers_(config.num_layers), key_width_(config.attention.num_kv_heads * config.attention.head_dim) {
  for (attention::PastKeys& layer : layers_) {
    layer.key.reserve(max_tokens * key_width_);
    layer.value.reserve(max_tokens * config.attention.num_kv_heads * config.attention.value_dim);
  }
}

size_t KeyValueCache::length() const { return layers_.back().key.size() / key_width_; }

size_t KeyValueCache::bytes(const ModelConfig& config, size_t max_tokens) {
  const attention::AttentionConfig& heads = config.attention;
  return base::checked_product(std::array{config.num_layers, max_tokens, heads.num_kv_heads,
                                          heads.head_dim + heads.value_dim, sizeof(float)})
      .value_or(std::numeric_limits<size_t>::max());
}

}  // namespace clearhead::model
