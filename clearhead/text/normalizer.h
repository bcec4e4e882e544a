// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "clearhead/text/aligned_text.h"

namespace clearhead::text {

// The first component of a tokenizer: brings a stretch of text into the form that the vocabulary was made for.
// Each stretch between added tokens is normalized on its own.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  // Appends the normalized form of source, which is valid UTF-8, to result.
  virtual void normalize(const AlignedText& source, AlignedText& result) const = 0;
};

}  // namespace clearhead::text
