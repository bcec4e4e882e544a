// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clearhead/views/terminal.h"

namespace clearhead::views {

// A piece of one line that knows both its colours and its columns.
class Text {
 public:
  Text() = default;
  // plain must be printable; code is what stands between "ESC [" and "m", empty for none.
  explicit Text(std::string_view plain, std::string_view code = {});

  size_t width() const { return width_; }  // columns
  bool empty() const { return parts_.empty(); }
  // With escape sequences, each part closed by itself.
  std::string str() const;

  Text& operator+=(const Text& other);
  friend Text operator+(Text left, const Text& right) { return left += right; }

  // Spaces at the end (or at the front) up to columns.
  Text padded(size_t columns) const;
  Text right_aligned(size_t columns) const;
  // At most columns wide, with an ellipsis if something had to go.
  Text cut(size_t columns, const Style& style) const;

 private:
  struct Part {
    std::string plain, code;
    size_t width;
  };
  std::vector<Part> parts_;
  size_t width_ = 0;
};

// A sentence with {name} in place of what is filled in; what stands around them is plain.
// A name without a value stays as it is.
Text fill_in(std::string_view sentence, std::initializer_list<std::pair<std::string_view, Text>> values);

// The parts with a separator between each two.
Text joined(const std::vector<Text>& parts, const Text& separator);

}  // namespace clearhead::views
