// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clearhead::text {

// The last component of a tokenizer: makes text of pieces again.
class Decoder {
 public:
  virtual ~Decoder() = default;

  // Turns pieces into stretches of text, which stand one after the other.
  virtual void rewrite(std::vector<std::string>& pieces) const = 0;

  std::string decode(std::span<const std::string_view> pieces) const;
};

// One after the other.
class DecoderSequence final : public Decoder {
 public:
  explicit DecoderSequence(std::vector<std::unique_ptr<Decoder>> steps) : steps_(std::move(steps)) {}
  void rewrite(std::vector<std::string>& pieces) const override;

 private:
  std::vector<std::unique_ptr<Decoder>> steps_;
};

// For a file without a decoder: pieces with spaces between.
class SpaceDecoder final : public Decoder {
 public:
  void rewrite(std::vector<std::string>& pieces) const override;
};

// Joins continuation pieces to what is before them and puts spaces between words; cleanup takes the space before
// punctuation and English contractions away again.
class WordPieceDecoder final : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  void rewrite(std::vector<std::string>& pieces) const override;

 private:
  std::string prefix_;
  bool cleanup_;
};

}  // namespace clearhead::text
