// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/template_processing.h"

namespace clearhead::text {

void TemplateProcessing::process(std::vector<Piece>& pieces, const Original&, bool add_special) const {
  std::vector<Piece> result;
  result.reserve(pieces.size() + items_.size());
  for (const Item& item : items_) {
    if (item.is_text) {
      for (Piece piece : pieces) {
        piece.type_id = item.type_id;
        result.push_back(piece);
      }
    } else if (add_special) {
      for (const uint32_t id : item.ids) {
        result.push_back({.id = id, .span = {0, 0}, .type_id = item.type_id, .special = true});
      }
    }
  }
  pieces.swap(result);
}

}  // namespace clearhead::text
