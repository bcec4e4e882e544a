// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "clearhead/tensor/block_type.h"
#include "clearhead/tensor/dtype.h"
#include "clearhead/tensor/shape.h"

namespace clearhead::format {

// One tensor as the header of a file declares it. At most one of dtype and block_type is there; neither for a type that
// we cannot compute with (F8_E4M3, I8, ...).
struct TensorEntry {
  std::string name;
  std::string dtype_name;  // as the file spells it
  std::optional<tensor::DType> dtype;
  tensor::Shape shape;
  size_t begin, end;  // bytes from the start of the data, behind the header
  std::optional<tensor::BlockType> block_type = std::nullopt;

  size_t bytes() const { return end - begin; }
};

}  // namespace clearhead::format
