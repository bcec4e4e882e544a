// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/engine/session.h"
#include "clearhead/model/workspace.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::measure {

// Texts of one length: "8x128".
struct EncoderShape {
  size_t batch = 1, seq_len = 1;

  // Throws: Error (usage) for another text or 0.
  static EncoderShape parse(std::string_view text);
  std::string text() const;
  size_t tokens() const { return batch * seq_len; }
};

std::span<const EncoderShape> encoder_shapes();

// The products of a whole model: 2 operations for each parameter of a layer's maps and token, and
// 4 seq_len head_dim for each head, half of it if causal.
double encoder_operations(const model::ModelConfig& config, const EncoderShape& shape);

// A whole model on a batch of texts, ready to be run again and again.
class EncoderRun {
 public:
  // Token ids drawn at random.
  EncoderRun(const engine::Session& session, const EncoderShape& shape);
  // Given ones: I64 [batch, seq]. Throws: Error (usage) for another type or shape.
  EncoderRun(const engine::Session& session, const tensor::TensorView& ids);

  const EncoderShape& shape() const { return shape_; }
  // Throws: Error as Transformer::run.
  void run();
  // [batch, seq, d_model], of the last run; valid until the next.
  tensor::TensorView hidden() const;

 private:
  const engine::Session& session_;
  EncoderShape shape_;
  std::vector<int64_t> ids_;       // [batch, seq]
  std::vector<size_t> lengths_;    // [batch]
  std::span<const float> hidden_;  // in the workspace
  model::Workspace workspace_;
};

}  // namespace clearhead::measure
