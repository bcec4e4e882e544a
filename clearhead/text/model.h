// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "clearhead/text/aligned_text.h"

namespace clearhead::text {

class WordCache;

// One token before it has words for people.
struct Piece {
  uint32_t id;
  Span span;  // of the text that the model was given; of the original text once the tokenizer has it
  uint32_t type_id = 0;
  bool continues_word = false;  // not the first piece of its word
  bool unknown = false;         // the model has no piece for the text
  bool special = false;         // put in by the post-processor
  bool added = false;           // an added token, found in the text
  // Characters of white space at the ends of what an added token was found as, which may be more than its own.
  uint32_t space_before = 0, space_after = 0;
};

// The third component of a tokenizer: the vocabulary, and the way to cut a word into pieces of it.
class Model {
 public:
  virtual ~Model() = default;

  // Appends the pieces of each of `words`, which are stretches of text in rising order. cache: words that this model
  // has cut before.
  virtual void tokenize(std::string_view text, std::span<const Span> words, WordCache& cache,
                        std::vector<Piece>& pieces) const = 0;

  // Can it cut a text as if each byte of it were written as the character that byte_level.h gives it?
  virtual bool reads_bytes() const { return false; }

  // Bytes of a text, each written so, that stand for nothing, as they have no piece and nothing stands for them.
  virtual size_t left_out(std::string_view) const { return 0; }

  // As tokenize does with the text written so, but with spans of the text as it stands. Only if reads_bytes().
  virtual void tokenize_bytes(std::string_view, std::span<const Span>, WordCache&, std::vector<Piece>&) const {}

  // Ids are below size(). One that has no piece is that of an empty text.
  virtual size_t size() const = 0;

  // Pieces, which are fewer than size() if ids are left out.
  virtual size_t count() const { return size(); }
  virtual std::optional<uint32_t> id_of(std::string_view piece) const = 0;
  virtual std::string_view piece_of(uint32_t id) const = 0;
};

}  // namespace clearhead::text
