// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bitset>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/text/merge_table.h"
#include "clearhead/text/model.h"
#include "clearhead/text/vocabulary.h"

namespace clearhead::text {

// Byte pair encoding: a word begins as its characters; again and again the two neighbours whose merge was learned first
// become one piece, the leftmost of equals, until no merge is left. A word of n characters costs n log n.
// Source: Sennrich et al. 2016, Neural Machine Translation of Rare Words with Subword Units; in the details the
// tokenizers library.
class Bpe final : public Model {
 public:
  struct Config {
    std::optional<std::string> unknown_piece = {};
    std::string continuing_prefix = {};  // in front of every character of a word but the first
    std::string end_suffix = {};         // behind the last one
    bool fuse_unknown = false;           // unknown characters side by side are one piece
    bool byte_fallback = false;  // an unknown character becomes the pieces <0x00> to <0xFF> of its bytes, if all exist
    bool ignore_merges = false;  // a word that is a piece needs no merges
    bool keep_gaps = false;      // what stands on two sides of a character without a piece is never merged
  };

  // Pairs of pieces, the first learned first; the texts stand elsewhere.
  using Merges = std::vector<std::pair<std::string_view, std::string_view>>;

  // Two pieces become one; merges of smaller ranks come first.
  struct Merge {
    uint32_t left, right, id, rank;
  };

  // Merges in their order. continuing_prefix is not repeated inside a piece. Throws: Error if one is not of the
  // vocabulary; `where` names the file.
  static std::vector<Merge> in_order(const Vocabulary& vocabulary, const Merges& merges,
                                     std::string_view continuing_prefix, std::string_view where);

  // Of merges of the same two pieces the last counts. Throws: Error if the unknown piece is not of the vocabulary, or
  // if prefix or suffix are longer than a piece may be; `where` names the file.
  Bpe(Vocabulary vocabulary, std::span<const Merge> merges, Config config, std::string_view where);

  void tokenize(std::string_view text, std::span<const Span> words, WordCache& cache,
                std::vector<Piece>& pieces) const override;
  bool reads_bytes() const override { return true; }
  size_t left_out(std::string_view text) const override;
  void tokenize_bytes(std::string_view text, std::span<const Span> words, WordCache& cache,
                      std::vector<Piece>& pieces) const override;
  size_t size() const override { return vocabulary_.size(); }
  size_t count() const override { return vocabulary_.count(); }
  std::optional<uint32_t> id_of(std::string_view piece) const override { return vocabulary_.id_of(piece); }
  std::string_view piece_of(uint32_t id) const override { return vocabulary_.piece_of(id); }

 private:
  // A piece of a word on its way. length 0: it was merged away.
  struct Symbol {
    uint32_t id;
    uint32_t length;
    uint32_t before, after;  // neighbours, kNone at the ends
    bool unknown;
  };

  struct Candidate {
    uint32_t rank, place, id;
  };

  struct Room {
    std::vector<Symbol> symbols;
    std::vector<Candidate> queue;
    std::vector<MergeTable::Merge> merges;  // of each symbol with the next
    std::string written;
  };

  void begin(std::string_view word, std::vector<Symbol>& symbols) const;
  bool add_bytes(std::string_view character, std::vector<Symbol>& symbols) const;
  void merge(Room& room) const;
  void merge_few(Room& room) const;
  void merge_many(Room& room) const;
  void add_pieces(Span word, const Room& room, std::vector<Piece>& pieces) const;
  void prepare_bytes();
  void cut_bytes(std::string_view text, Span word, Room& room, std::vector<Piece>& pieces) const;
  uint32_t written_id(char byte) const { return written_ids_[static_cast<unsigned char>(byte)]; }
  void cut_written(std::string_view text, Span word, Room& room, std::vector<Piece>& pieces) const;
  void cut(std::string_view text, Span word, Room& room, std::vector<Piece>& pieces) const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  Config config_;
  uint32_t unknown_id_ = 0;
  std::vector<uint32_t> byte_ids_;  // [256] with byte_fallback; kNone where the vocabulary lacks one

  // The pieces of bytes written as characters, and which bytes some piece has side by side.
  std::array<uint32_t, 256> written_ids_;  // kNone: none
  std::bitset<256 * 256> neighbours_;      // [256, 256]
};

}  // namespace clearhead::text
