// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/short_pieces.h"

#include <bit>

namespace clearhead::text {

ShortPieces::ShortPieces(size_t count) : slots_(std::bit_ceil(count * 2 + 2)), mask_(slots_.size() - 1) {
  shift_ = 64 - std::countr_zero(slots_.size());
}

void ShortPieces::add(std::string_view piece, uint32_t id) {
  if (piece.empty() || piece.size() > kMaxBytes) return;
  const uint64_t bytes = packed(piece);
  size_t slot = slot_of(bytes);
  while (slots_[slot].size != 0) slot = (slot + 1) & mask_;
  slots_[slot] = {bytes, static_cast<uint32_t>(piece.size()), id};
}

}  // namespace clearhead::text
