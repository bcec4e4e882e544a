// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "clearhead/attention/config.h"
#include "clearhead/attention/multi_head_attention.h"
#include "clearhead/linear/linear.h"
#include "clearhead/model/rotary.h"

namespace clearhead::model {

// Which vector for its place is added to a token's.
enum class Positions { learned, sinusoidal, none };

// Where the norms of a block stand.
//   none  x + f(x)
//   post  norm(x + f(x))                      (Vaswani et al. 2017)
//   pre   x + f(norm(x)), and one more norm behind the last block   (Radford et al. 2019)
//   around  x + norm'(f(norm(x))), and one more norm behind the last block   (Gemma Team 2024)
enum class NormPlacement { none, post, pre, around };

// The norms of blocks and of the last hidden state.
//   layer  (x - mean) / sqrt(variance + epsilon) gain + bias     (Ba, Kiros and Hinton 2016)
//   rms    x / sqrt(mean(x^2) + epsilon) gain                    (Zhang and Sennrich 2019)
enum class NormKind { layer, rms };

// Layers that see near tokens only, among others that see all.
struct NearLayers {
  std::vector<bool> is_near;           // [num_layers], or empty: none
  size_t left_window = 0;              // of those, as in AttentionConfig
  std::optional<RotaryConfig> rotary;  // of those; absent: as the others
};

// What an image is cut into before it is read: patches, row by row.
struct PatchGrid {
  size_t channels = 0;
  size_t image_height = 0, image_width = 0;
  size_t patch_height = 0, patch_width = 0;
  size_t registers = 0;  // learned tokens without a place, behind the class token

  size_t rows() const { return image_height / patch_height; }
  size_t columns() const { return image_width / patch_width; }
  size_t patches() const { return rows() * columns(); }
  size_t patch_values() const { return channels * patch_height * patch_width; }
  size_t image_values() const { return channels * image_height * image_width; }
  size_t tokens() const { return 1 + registers + patches(); }  // class token, registers, patches
};

// Everything that decides a forward pass: behaviours, filled in by families/.
struct ModelConfig {
  std::string family;
  size_t vocab_size = 0;       // rows of the token embedding
  size_t type_vocab_size = 0;  // rows of the token type embedding; 0: there is none
  size_t context_len = 0;      // tokens that have a position; 0: no limit
  size_t num_layers = 0;
  size_t d_model = 0;
  size_t d_ff = 0;  // 0: blocks have no feed-forward half
  Positions positions = Positions::learned;
  // The token that fills texts up, where positions begin behind its id: each other token has row padding_id + 1 + (how
  // many others came before), this one has row padding_id.
  std::optional<size_t> padding_id;
  bool embedding_norm = false;  // a layer norm behind the sum of the embeddings
  NormPlacement norm_placement = NormPlacement::post;
  NormKind norm_kind = NormKind::layer;
  float norm_epsilon = 1e-12f;
  bool parallel_halves = false;  // both halves of a pre-norm block read x: x + attention(norm(x)) + f(norm'(x))
  linear::Activation activation = linear::Activation::gelu;
  bool gated = false;         // feed-forward: (activation(x W_G^T) * x W_1^T) W_2^T   (Shazeer 2020)
  float embedding_scale = 1;  // of token embeddings
  std::optional<PatchGrid> patches = std::nullopt;  // the model reads images, not token ids; it has no vocab_size then
  std::optional<RotaryConfig> rotary = std::nullopt;
  bool tied_vocabulary = false;                        // the head over the vocabulary is the token embedding
  bool head_norm = false;                              // an RMS norm of every head's query and key
  std::optional<float> logit_soft_cap = std::nullopt;  // cap tanh(logit / cap)
  attention::Split split = attention::Split::projection;
  bool attention_bias = false, feed_forward_bias = false;  // where a family has files with and without
  attention::AttentionConfig attention;
  NearLayers near = {};

  bool is_near(size_t layer) const { return !near.is_near.empty() && near.is_near[layer]; }
  attention::AttentionConfig attention_of(size_t layer) const;
  // What traces say: attention.json(), and where layers differ also "left_windows", one for each layer.
  std::string attention_json() const;
  // The rotary positions of a layer, or null.
  const RotaryConfig* rotary_of(size_t layer) const;
  // Whether positions of a text depend on how long it is in the end.
  bool depends_on_length() const {
    return (rotary && rotary->depends_on_length()) || (near.rotary && near.rotary->depends_on_length());
  }
  // Whether a text of declared_len tokens has other positions than a short one.
  bool stretches(size_t declared_len) const {
    const auto is_over = [&](const std::optional<RotaryConfig>& one) {
      return one && one->depends_on_length() && declared_len > one->original_len;
    };
    return is_over(rotary) || is_over(near.rotary);
  }
  bool has_final_norm() const {
    return norm_placement == NormPlacement::pre || norm_placement == NormPlacement::around;
  }

  // Rows of the table of learned positions.
  size_t position_rows() const { return context_len + (padding_id ? *padding_id + 1 : 0); }

  // Throws: Error naming the field that does not fit the others.
  void check() const;
};

}  // namespace clearhead::model
