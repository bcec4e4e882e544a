// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/word_level.h"

#include <utility>

#include "clearhead/base/error.h"

namespace clearhead::text {

WordLevel::WordLevel(Vocabulary vocabulary, std::string_view unknown_piece, std::string_view where)
    : vocabulary_(std::move(vocabulary)) {
  const std::optional<uint32_t> id = vocabulary_.id_of(unknown_piece);
  if (!id) base::fail(where, "unk_token to be in the vocabulary", base::quoted(unknown_piece));
  unknown_id_ = *id;
}

void WordLevel::tokenize(std::string_view text, std::span<const Span> words, WordCache&,
                         std::vector<Piece>& pieces) const {
  for (const Span span : words) {
    const std::optional<uint32_t> id = vocabulary_.id_of(text.substr(span.begin, span.size()));
    pieces.push_back({.id = id.value_or(unknown_id_), .span = span, .unknown = !id});
  }
}

}  // namespace clearhead::text
