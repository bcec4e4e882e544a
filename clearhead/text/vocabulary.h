// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/text/text_index.h"

namespace clearhead::text {

// The pieces that a model has, and their ids below size(). An id in between may have none: its text is empty.
class Vocabulary {
 public:
  // The longest piece, and the most bytes of all pieces together.
  static constexpr size_t kMaxPieceBytes = 1024, kMaxBytes = size_t{1} << 24;

  // Throws: Error if more than a million ids have no piece, if an id or a piece is there twice, or if there are more
  // bytes than these; `where` names the file.
  Vocabulary(std::span<const std::pair<std::string_view, uint64_t>> entries, std::string_view where);

  size_t size() const { return begins_.size() - 1; }
  size_t count() const { return count_; }  // pieces
  std::optional<uint32_t> id_of(std::string_view piece) const;
  std::string_view piece_of(uint32_t id) const { return {bytes_.data() + begins_[id], begins_[id + 1] - begins_[id]}; }

 private:
  size_t count_ = 0;
  std::string bytes_;             // all pieces, one after the other, by id
  std::vector<uint32_t> begins_;  // [size + 1]
  TextIndex ids_;                 // of the pieces
};

}  // namespace clearhead::text
