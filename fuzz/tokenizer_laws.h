// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "clearhead/base/utf8.h"
#include "clearhead/text/tokenizer.h"
#include "clearhead/text/word.h"

// What holds for every tokenizer and every text; the program ends where it does not.
namespace clearhead::fuzz {

inline void expect(bool holds) {
  if (!holds) std::abort();
}

// ordered: each span begins where the last one does or behind it, as long as no normalizer turns characters round.
inline void check_tokens(const text::Encoding& encoding, std::string_view text, bool ordered) {
  size_t last = 0;
  for (const text::Token& token : encoding.tokens) {
    expect(token.begin <= token.end && token.end <= text.size());
    expect(!base::first_invalid_utf8(token.text));
    if (token.special) continue;
    expect(!ordered || token.begin >= last);
    last = token.begin;
  }
  size_t grouped = 0;
  for (const auto& [first, end] : text::word_groups(encoding)) {
    expect(first == grouped && end > first);
    grouped = end;
  }
  expect(grouped == encoding.tokens.size());
}

// The text of the tokens, special ones too.
inline std::string check_text(const text::Tokenizer& tokenizer, std::string_view text, bool ordered) {
  const text::Encoding encoding = tokenizer.encode(text);
  check_tokens(encoding, text, ordered);
  const text::Encoding again = tokenizer.encode(text);  // from the words that are known now
  expect(again.tokens.size() == encoding.tokens.size());
  for (size_t i = 0; i < again.tokens.size(); ++i) {
    const text::Token &one = again.tokens[i], &before = encoding.tokens[i];
    expect(one.begin == before.begin && one.end == before.end && one.continues_word == before.continues_word);
  }
  const std::vector<int64_t> ids = tokenizer.encode_ids(text);
  expect(ids.size() == encoding.tokens.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    expect(ids[i] == encoding.tokens[i].id);
    expect(ids[i] >= 0 && static_cast<size_t>(ids[i]) < tokenizer.vocab_size());
    expect(tokenizer.piece_of(ids[i]) == encoding.tokens[i].piece);
  }
  tokenizer.decode(ids, true);
  std::string streamed;
  text::DecodeStream stream = tokenizer.decode_stream(false);
  for (const int64_t id : ids) {
    const std::string part = stream.add(id);
    expect(!base::first_invalid_utf8(part));
    streamed += part;
  }
  streamed += stream.finish();
  expect(tokenizer.decode(ids, false) == streamed);
  return streamed;
}

}  // namespace clearhead::fuzz
