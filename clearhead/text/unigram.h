// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "clearhead/text/code_point_trie.h"
#include "clearhead/text/model.h"

namespace clearhead::text {

// Cuts a word into the pieces whose scores, logarithms of probabilities, have the largest sum:
//
//   best(0) = 0,  best(j) = max over pieces word[i, j) of best(i) + score(piece)
//
// A code point that is no piece by itself may be unknown, with the smallest score less 10; unknown ones side by side
// are one token, or the tokens of their bytes <0x00> to <0xFF> if byte_fallback is on and the vocabulary has them. Of
// equal sums the one that was found first counts. Time grows with the length of the word.
// Units: natural logarithms, added up in double.
// Source: Kudo 2018, Subword Regularization, section 3.2; in the details the tokenizers library.
class Unigram final : public Model {
 public:
  struct Config {
    std::optional<uint64_t> unknown_id;
    bool byte_fallback = false;
    std::vector<bool> unmatched = {};           // by id: no text is cut into these; empty: into all
    std::optional<double> smallest_score = {};  // that of an unknown one is 10 less; else of all pieces
  };

  // pieces and scores by id; of equal pieces the last counts. Throws: Error if unknown_id is absent or is none of them,
  // or if a piece is too long or there are too many; `where` names the file.
  Unigram(std::vector<std::pair<std::string_view, double>> pieces, const Config& config, std::string_view where);

  void tokenize(std::string_view text, std::span<const Span> words, WordCache& cache,
                std::vector<Piece>& pieces) const override;
  size_t size() const override { return scores_.size(); }
  std::optional<uint32_t> id_of(std::string_view piece) const override;
  std::string_view piece_of(uint32_t id) const override;

 private:
  // The best way to a place in the word: with which piece, and where that begins.
  struct Best {
    double score;
    uint32_t begin;
    uint32_t id;
  };

  void find_best(std::string_view word, std::vector<Best>& best) const;
  void cut(std::string_view text, Span word, std::vector<Best>& best, std::vector<Piece>& pieces) const;
  void add_unknown(std::string_view text, Span span, std::vector<Piece>& pieces) const;

  CodePointTrie trie_;
  std::vector<double> scores_;  // [size]
  std::string bytes_;           // all pieces, one after the other, by id
  std::vector<size_t> begins_;  // [size + 1]
  std::unordered_map<std::string, uint32_t> unmatched_ids_;
  std::vector<uint32_t> byte_ids_;  // [256] with byte_fallback; kNone where the vocabulary lacks one
  uint32_t unknown_id_;
  double unknown_score_;
};

}  // namespace clearhead::text
