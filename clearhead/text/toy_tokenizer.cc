// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/toy_tokenizer.h"

#include <fmt/format.h>

#include "clearhead/base/error.h"
#include "clearhead/base/utf8.h"
#include "clearhead/text/aligned_text.h"
#include "clearhead/text/unicode.h"

namespace clearhead::text {
namespace {

int64_t id_of(std::string_view piece) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : piece) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return static_cast<int64_t>(hash % (uint64_t{1} << 31));
}

void add(Encoding& encoding, std::string_view piece, size_t begin, size_t end) {
  Token& token = encoding.tokens.emplace_back();
  token.text = piece;
  token.piece = piece;
  token.id = id_of(piece);
  token.begin = begin;
  token.end = end;
}

}  // namespace

Encoding toy_encode(std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    base::refuse("text", fmt::format("at most {} bytes", kMaxTextBytes), fmt::format("{}", text.size()));
  }
  const PropertyTable& table = property_table();
  Encoding encoding;
  size_t word = 0, at = 0;  // word: where the word that at is in began
  const auto end_word = [&] {
    if (word < at) add(encoding, text.substr(word, at - word), word, at);
  };
  while (at < text.size()) {
    const base::CodePoint here = base::decode_utf8(text.substr(at));
    const unsigned bits = table[here.value] & (kWhiteSpace | kPunctuation | kHan);
    const size_t next = at + here.length;
    if (bits != 0 || !here.valid) {
      end_word();
      if (!here.valid) add(encoding, "\xef\xbf\xbd", at, next);
      if ((bits & (kPunctuation | kHan)) != 0) add(encoding, text.substr(at, here.length), at, next);
      word = next;
    }
    at = next;
  }
  end_word();
  return encoding;
}

}  // namespace clearhead::text
