// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "clearhead/capture/observer.h"
#include "clearhead/model/config.h"
#include "clearhead/model/parameters.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::model {

// What a model reads: token ids of one text.
struct ModelInput {
  std::span<const int64_t> ids;       // [seq]
  std::span<const int64_t> type_ids;  // [seq], or empty: all 0
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

  // Runs one text and returns the last hidden state [1, seq, d_model]; shows every stage that observer wants.
  // Throws: Error (usage) if there is no token, an id has no row in the embedding, or there are more tokens than
  // positions; base::Interrupted between layers.
  tensor::Tensor run(const ModelInput& input, capture::Observer* observer = nullptr) const;

 private:
  ModelConfig config_;
  Parameters parameters_;
};

}  // namespace clearhead::model
