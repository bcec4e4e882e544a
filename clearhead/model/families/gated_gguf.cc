// SPDX-License-Identifier: Apache-2.0
#include "clearhead/model/families/gated_decoder.h"
#include "clearhead/model/families/gguf_config.h"

namespace clearhead::model {

ModelConfig read_gated_gguf(GgufConfig& gguf, size_t vocab_size) {
  ModelConfig config = read_sizes_gguf(gguf, vocab_size, true);
  config.positions = Positions::none;
  config.norm_placement = NormPlacement::pre;
  config.norm_kind = NormKind::rms;
  config.norm_epsilon = static_cast<float>(gguf.number("attention.layer_norm_rms_epsilon"));
  config.activation = linear::Activation::silu;
  config.gated = true;
  config.rotary = read_rotary_gguf(gguf, config.attention.head_dim, config.context_len);
  return config;
}

}  // namespace clearhead::model
