// SPDX-License-Identifier: Apache-2.0
#include "clearhead/text/category.h"

#include <vector>

namespace clearhead::text {

const PropertyTable& category_table() {
  static const PropertyTable table = [] {
    std::vector<uint8_t> bits(0x110000);
    uint8_t own = 0;
    const tables::CategoryChange* change = std::begin(tables::kCategoryChanges);
    for (char32_t c = 0; c < bits.size(); ++c) {
      if (change != std::end(tables::kCategoryChanges) && change->first == c) own = (change++)->bits;
      bits[c] = own;
    }
    return PropertyTable(bits);
  }();
  return table;
}

}  // namespace clearhead::text
