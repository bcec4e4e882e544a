// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/key_value_cache.h"

#include <array>
#include <limits>

#include "clearhead/base/checked.h"

namespace clearhead::model {

KeyValueCache::KeyValueCache(const ModelConfig& config, attention::Precision kept) {
  for (size_t layer = 0; layer < config.num_layers; ++layer) layers_.emplace_back(config.attention_of(layer), kept);
}

void KeyValueCache::truncate(size_t length) {
  for (attention::KeyValueCache& layer : layers_) layer.truncate(length);
}

attention::RoundingError KeyValueCache::error() const {
  attention::RoundingError sum;
  for (const attention::KeyValueCache& layer : layers_) sum.add(layer.error());
  return sum;
}

size_t KeyValueCache::bytes() const {
  size_t sum = 0;
  for (const attention::KeyValueCache& layer : layers_) sum += layer.bytes();
  return sum;
}

size_t KeyValueCache::bytes(const ModelConfig& config, size_t tokens, attention::Precision kept) {
  const size_t of_layer = attention::KeyValueCache::bytes(config.attention, tokens, kept);
  return base::checked_product(std::array{config.num_layers, of_layer}).value_or(std::numeric_limits<size_t>::max());
}

}  // namespace clearhead::model
