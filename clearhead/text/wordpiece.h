// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "clearhead/text/model.h"
#include "clearhead/text/short_pieces.h"
#include "clearhead/text/trie.h"
#include "clearhead/text/vocabulary.h"

namespace clearhead::text {

// Cuts a word from left to right into the longest pieces that the vocabulary has; pieces after the first are looked up
// with a prefix. A word that cannot be cut to its end, or is too long, is one unknown piece.
// Source: Schuster and Nakajima 2012; the greedy form is of BERT (Devlin et al. 2018).
class WordPiece final : public Model {
 public:
  struct Config {
    std::string unknown_piece = "[UNK]";
    std::string continuing_prefix = "##";
    size_t max_word_code_points = 100;
  };

  // Throws: Error if the vocabulary lacks the unknown piece; `where` names the file.
  WordPiece(Vocabulary vocabulary, Config config, std::string_view where);

  void tokenize(std::string_view text, std::span<const Span> words, WordCache& cache,
                std::vector<Piece>& pieces) const override;
  size_t size() const override { return vocabulary_.size(); }
  size_t count() const override { return vocabulary_.count(); }
  std::optional<uint32_t> id_of(std::string_view piece) const override { return vocabulary_.id_of(piece); }
  std::string_view piece_of(uint32_t id) const override { return vocabulary_.piece_of(id); }

 private:
  bool too_long(std::string_view word) const;
  bool cut(std::string_view word, uint32_t begin, std::vector<Piece>& pieces) const;

  Vocabulary vocabulary_;
  Trie trie_;  // of the vocabulary
  ShortPieces short_pieces_;
  Config config_;
  uint32_t unknown_id_;
  uint32_t continuing_node_;  // of the trie, after the prefix
};

}  // namespace clearhead::text
