// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace clearhead::tensor {

// Sizes of the axes, slowest first. No axis at all is a scalar (one element); an axis of 0 is an empty tensor.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<size_t> sizes) : sizes_(sizes) {}
  explicit Shape(std::vector<size_t> sizes) : sizes_(std::move(sizes)) {}

  size_t rank() const { return sizes_.size(); }
  size_t operator[](size_t axis) const { return sizes_[axis]; }
  std::span<const size_t> sizes() const { return sizes_; }

  // Number of elements, or nothing if it does not fit.
  std::optional<size_t> checked_elements() const;
  // Number of elements. Throws: Error if it does not fit.
  size_t elements() const;

  // "[2, 3]", "[]" for a scalar.
  std::string text() const;

  bool operator==(const Shape&) const = default;

 private:
  std::vector<size_t> sizes_;
};

}  // namespace clearhead::tensor
