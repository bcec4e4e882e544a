// SPDX-License-Identifier: Apache-2.0
#include "clearhead/tensor/shape.h"

#include <fmt/ranges.h>

#include "clearhead/base/checked.h"
#include "clearhead/base/error.h"

namespace clearhead::tensor {

std::optional<size_t> Shape::checked_elements() const { return base::checked_product(sizes()); }

size_t Shape::elements() const {
  const auto count = checked_elements();
  if (!count) base::fail("shape", "a number of elements that fits 64 bits", text());
  return *count;
}

std::string Shape::text() const { return fmt::format("[{}]", fmt::join(sizes(), ", ")); }

}  // namespace clearhead::tensor
