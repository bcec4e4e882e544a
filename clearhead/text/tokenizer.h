// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clearhead::text {

struct Token {
  std::string text;   // for people, valid UTF-8: the stretch of the original without white space before it, or the
                      // name of a special token; of a long stretch of several tokens, only with the first of them
  std::string piece;  // the vocabulary's entry, such as "##ing"
  int64_t id = 0;
  size_t begin = 0, end = 0;    // bytes of the original text; equal for a special token, which stands for none
  bool special = false;         // put in by the tokenizer ([CLS], [SEP]), not found in the text
  size_t type_id = 0;           // 0 unless the template says otherwise
  bool continues_word = false;  // goes on with the word of the token before
};

struct Encoding {
  std::vector<Token> tokens;
  size_t unknown_count = 0;  // tokens that stand for text which the vocabulary cannot write
  size_t left_out = 0;       // bytes of the normalized text for which no token stands, since they have no piece
};

struct TokenizerParts;
class DecodeStream;

// Turns a text into tokens as the tokenizers library does it from the same tokenizer.json, to the last id and offset.
//
// The steps: added tokens are cut out of the text as it is; each stretch between is normalized; added tokens that want
// it are cut out of the normalized text; what is left is cut into words, and the words into pieces of the vocabulary;
// special tokens are put around. `truncation` and `padding` of the file are read but not carried out.
//
// A text need not be valid UTF-8: each maximal invalid sequence counts as one U+FFFD (which BERT's cleaning deletes),
// and offsets still count bytes of the text as it was given.
//
// Immutable: one tokenizer may be used by many threads.
class Tokenizer {
 public:
  // Throws: Error if the file cannot be read, is malformed, or has a component that is not known here.
  static Tokenizer from_file(const std::filesystem::path& tokenizer_json);

  // The same from memory; `where` opens each error text.
  static Tokenizer from_json(std::string_view json, std::string_view where);

  // The same of parts that are made already (tokenizer_json.h).
  static Tokenizer from_parts(TokenizerParts parts, std::string_view where);

  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Throws: Error if text is longer than kMaxTextBytes (1 GiB), or if a regular expression of the file takes too many
  // steps in it.
  Encoding encode(std::string_view text, bool add_special = true) const;

  // Only the ids, for those who need no more: several times as fast.
  std::vector<int64_t> encode_ids(std::string_view text, bool add_special = true) const;

  // The text of ids, special tokens (also those found in the text) left out if skip_special.
  // Throws: Error for an id outside the vocabulary.
  std::string decode(std::span<const int64_t> ids, bool skip_special) const;

  // The same text as it grows, token by token. The tokenizer must outlive it.
  DecodeStream decode_stream(bool skip_special) const;

  // Above every id of the model and the added tokens. One in between that the file left out is that of an empty piece.
  size_t vocab_size() const;
  std::optional<int64_t> id_of(std::string_view piece) const;

  // Throws: Error for an id outside the vocabulary.
  std::string_view piece_of(int64_t id) const;

  // What the file asks for and encode does not do: a longest text, a length to fill up to (0: that of the longest text
  // of a batch), in tokens.
  std::optional<size_t> file_truncation() const;
  std::optional<size_t> file_padding() const;

  // What in the file does not fit together but does no harm.
  std::vector<std::string> warnings() const;

 private:
  friend class DecodeStream;
  class Impl;

  Tokenizer(TokenizerParts parts, std::string_view where);

  std::unique_ptr<const Impl> impl_;
};

// Decodes tokens as they come. What add returns, one after the other, with what finish returns, is what decode gives
// for all of them; each is valid UTF-8. Text that a later token may still change is kept back: a character that is not
// whole, bytes of which more may follow, spaces that the end of a text loses.
class DecodeStream {
 public:
  ~DecodeStream();
  DecodeStream(DecodeStream&&) noexcept;
  DecodeStream& operator=(DecodeStream&&) noexcept;

  // Throws: Error for an id outside the vocabulary.
  std::string add(int64_t id);

  // To be called once, at the end.
  std::string finish();

 private:
  friend class Tokenizer;
  class Impl;

  explicit DecodeStream(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace clearhead::text
