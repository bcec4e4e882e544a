// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/engine/reader.h"
#include "clearhead/engine/session.h"
#include "clearhead/linear/linear.h"
#include "clearhead/tensor/tensor.h"

namespace clearhead::measure {

// What a decoder does: "prompt 512" reads so many tokens; "decode 512" writes kDecodedTokens more behind so many.
struct DecoderShape {
  bool decodes = false;
  size_t context = 512;

  // Throws: Error (usage) for another text or 0.
  static DecoderShape parse(std::string_view text);
  std::string text() const;
};

constexpr size_t kDecodedTokens = 16;

std::span<const DecoderShape> decoder_shapes();

// A decoder on one text, ready to be run again and again.
class DecoderRun {
 public:
  // Token ids drawn at random.
  DecoderRun(const engine::Session& session, const DecoderShape& shape,
             linear::Compute compute = linear::Compute::single);
  // Given ones: I64 [context, and kDecodedTokens more if it decodes]. Throws: Error (usage) for another type or shape.
  DecoderRun(const engine::Session& session, const DecoderShape& shape, const tensor::TensorView& ids,
             linear::Compute compute = linear::Compute::single);

  const DecoderShape& shape() const { return shape_; }
  // Tokens that a run reads.
  size_t tokens() const { return shape_.decodes ? kDecodedTokens : shape_.context; }

  // looks: whether it looks for the heads that look hardest at each token, as engine::generate does for three of them.
  // Throws: Error as Transformer::run.
  void run(bool looks = false);
  // Logits behind the last token of the last run: [vocab].
  tensor::TensorView logits() const { return logits_; }

 private:
  void prepare();
  void read(std::span<const int64_t> ids, bool looks);

  DecoderShape shape_;
  std::vector<int64_t> ids_;
  engine::Reader reader_;
  tensor::Tensor logits_;
};

}  // namespace clearhead::measure
