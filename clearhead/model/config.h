// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "clearhead/attention/config.h"
#include "clearhead/attention/multi_head_attention.h"
#include "clearhead/linear/linear.h"

namespace clearhead::model {

// How a token's place enters the computation.
enum class Positions { learned, sinusoidal };

// Where the norms of a block stand.
//   none  x + f(x)
//   post  norm(x + f(x))                      (Vaswani et al. 2017)
//   pre   x + f(norm(x)), and one more norm behind the last block   (Radford et al. 2019)
enum class NormPlacement { none, post, pre };

// Everything that decides a forward pass: behaviours, filled in by families/.
struct ModelConfig {
  std::string family;
  size_t vocab_size = 0;       // rows of the token embedding
  size_t type_vocab_size = 0;  // rows of the token type embedding; 0: there is none
  size_t context_len = 0;      // positions; 0: no limit
  size_t num_layers = 0;
  size_t d_model = 0;
  size_t d_ff = 0;  // 0: blocks have no feed-forward half
  Positions positions = Positions::learned;
  bool embedding_norm = false;  // a layer norm behind the sum of the embeddings
  NormPlacement norm_placement = NormPlacement::post;
  float norm_epsilon = 1e-12f;
  linear::Activation activation = linear::Activation::gelu;
  attention::Split split = attention::Split::projection;
  attention::AttentionConfig attention;

  // Throws: Error naming the field that does not fit the others.
  void check() const;
};

}  // namespace clearhead::model
