// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace clearhead::text {

// The last component of a tokenizer: makes text of pieces again.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::string decode(std::span<const std::string_view> pieces) const = 0;
};

// For a file without a decoder: pieces with spaces between.
class SpaceDecoder final : public Decoder {
 public:
  std::string decode(std::span<const std::string_view> pieces) const override;
};

// Joins continuation pieces to what is before them and puts spaces between words; cleanup takes the space before
// punctuation and English contractions away again.
class WordPieceDecoder final : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}

  std::string decode(std::span<const std::string_view> pieces) const override;

 private:
  std::string prefix_;
  bool cleanup_;
};

}  // namespace clearhead::text
