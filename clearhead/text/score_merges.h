// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "clearhead/text/bpe.h"
#include "clearhead/text/gguf_pieces.h"
#include "clearhead/text/vocabulary.h"

namespace clearhead::text {

// The most ways to put pieces together; gemma-3-270m's 262144 pieces have 513511.
constexpr size_t kMaxScoreMerges = size_t{1} << 22;

// Every way to put a piece that is neither control nor user-defined together from two others, best score first: what
// merging by score does, as merges. Those of equal scores have equal ranks, so that the leftmost is taken. Costs as
// many steps as the pieces have bytes. Throws: Error if they are more than kMaxScoreMerges; `where` opens the text.
std::vector<Bpe::Merge> merges_by_score(const Vocabulary& vocabulary, const GgufPieces& pieces, std::string_view where);

}  // namespace clearhead::text
