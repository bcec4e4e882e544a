// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "clearhead/text/model.h"
#include "clearhead/text/vocabulary.h"

namespace clearhead::text {

// Each word is one piece: its own, or the unknown one.
class WordLevel final : public Model {
 public:
  // Throws: Error if the vocabulary lacks the unknown piece; `where` names the file.
  WordLevel(Vocabulary vocabulary, std::string_view unknown_piece, std::string_view where);

  void tokenize(std::string_view text, std::span<const Span> words, WordCache& cache,
                std::vector<Piece>& pieces) const override;
  size_t size() const override { return vocabulary_.size(); }
  size_t count() const override { return vocabulary_.count(); }
  std::optional<uint32_t> id_of(std::string_view piece) const override { return vocabulary_.id_of(piece); }
  std::string_view piece_of(uint32_t id) const override { return vocabulary_.piece_of(id); }

 private:
  Vocabulary vocabulary_;
  uint32_t unknown_id_;
};

}  // namespace clearhead::text
