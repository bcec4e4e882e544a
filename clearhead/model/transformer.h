// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "clearhead/capture/observer.h"
#include "clearhead/model/config.h"
#include "clearhead/model/key_value_cache.h"
#include "clearhead/model/parameters.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::model {

struct Workspace;

// What a model reads: token ids of one text, or of the part of it that follows what the cache has, or of several texts
// behind each other, without padding; or the values of one image.
struct ModelInput {
  std::span<const int64_t> ids;          // [rows]
  std::span<const int64_t> type_ids;     // [rows], or empty: all 0
  std::span<const size_t> lengths = {};  // tokens of each text, rows together; none: one text
  // Tokens of the whole text of which ids are a part, for positions that depend on it (ModelConfig::depends_on_length):
  // one length from its first token to its last. 0: ids are all; that must not be when such a model has a cache.
  size_t declared_len = 0;
  KeyValueCache* cache = nullptr;  // for one text and a causal model; run puts its keys and values into it
  // What keys and values are rounded to as they are produced; a cache has its own word for it.
  attention::Precision kept = attention::Precision::single;
  linear::Compute compute = linear::Compute::single;  // of the products with the parameters of the blocks
  std::span<const float> pixels = {};                 // [channels, height, width], for a model with patches

  attention::Precision keys_kept() const { return cache == nullptr ? kept : cache->kept(); }
  // Vectors that the blocks read: tokens, or class token, registers and patches.
  size_t rows(const ModelConfig& config) const { return config.patches ? config.patches->tokens() : ids.size(); }
  size_t first_position() const { return cache == nullptr ? 0 : cache->length(); }
};

// A model ready to run. Parameters are shared and constant: several threads may run it at once.
class Transformer {
 public:
  Transformer(ModelConfig config, Parameters parameters);

  const ModelConfig& config() const { return config_; }
  const Parameters& parameters() const { return parameters_; }

  // Whether run has this stage at all (a model without a feed-forward half has no feed_forward_hidden, ...).
  bool has(capture::Stage stage) const;

  // Bytes that the parameters keep in memory; what stays in a mapped file does not count.
  size_t resident_bytes() const;

  // Runs one text or several, each with the bits that it has alone, and returns the last hidden state [1, rows,
  // d_model]; shows every stage that observer wants, seq being all rows. Throws: Error (usage) if there is no token, an
  // id has no row in the embedding, a text has more tokens than positions or than were declared, or an image is of
  // another size than the model's; base::Interrupted between layers.
  tensor::Tensor run(const ModelInput& input, capture::Observer* observer = nullptr) const;

  // The same with the result [rows, d_model] in the workspace, valid until its next run. A run that is no larger than
  // an earlier one in the same workspace allocates nothing, but for what an observer asks.
  std::span<const float> run(const ModelInput& input, Workspace& workspace,
                             capture::Observer* observer = nullptr) const;

  // For hidden states that run returned, how well each token of the vocabulary would come next:
  //
  //   logits = hidden W^T, and cap tanh(logits / cap) with a soft cap
  //
  // Shapes: hidden [rows, d_model], result [1, rows, vocab]. Throws: Error if the model has no head over the
  // vocabulary.
  tensor::Tensor logits(std::span<const float> hidden) const;

 private:
  ModelConfig config_;
  Parameters parameters_;
};

}  // namespace clearhead::model
