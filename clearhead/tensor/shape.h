// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
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
  Shape(std::initializer_list<size_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}
  explicit Shape(const std::vector<size_t>& sizes) : Shape(std::span<const size_t>(sizes)) {}
  explicit Shape(std::span<const size_t> sizes) : rank_(sizes.size()) {
    if (rank_ <= kFew) {
      std::ranges::copy(sizes, few_.begin());
    } else {
      many_.assign(sizes.begin(), sizes.end());
    }
  }

  size_t rank() const { return rank_; }
  size_t operator[](size_t axis) const { return sizes()[axis]; }
  std::span<const size_t> sizes() const { return {rank_ <= kFew ? few_.data() : many_.data(), rank_}; }

  // Number of elements, or nothing if it does not fit.
  std::optional<size_t> checked_elements() const;
  // Number of elements. Throws: Error if it does not fit.
  size_t elements() const;

  // "[2, 3]", "[]" for a scalar.
  std::string text() const;

  bool operator==(const Shape& other) const { return std::ranges::equal(sizes(), other.sizes()); }

 private:
  static constexpr size_t kFew = 4;  // that need no memory of their own

  size_t rank_ = 0;
  std::array<size_t, kFew> few_{};
  std::vector<size_t> many_;
};

}  // namespace clearhead::tensor
