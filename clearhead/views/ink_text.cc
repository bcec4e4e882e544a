// SPDX-License-Identifier: Apache-2.0
#include "clearhead/views/ink_text.h"

#include <algorithm>

namespace clearhead::views {

Text::Text(std::string_view plain, std::string_view code) {
  if (plain.empty()) return;
  width_ = display_width(plain);
  parts_.push_back({std::string(plain), std::string(code), width_});
}

std::string Text::str() const {
  std::string output;
  for (const Part& part : parts_)
    output += part.code.empty() ? part.plain : "\x1b[" + part.code + "m" + part.plain + "\x1b[0m";
  return output;
}

Text& Text::operator+=(const Text& other) {
  const std::vector<Part> added = other.parts_;
  parts_.insert(parts_.end(), added.begin(), added.end());
  width_ += other.width_;
  return *this;
}

Text Text::padded(size_t columns) const {
  return width_ >= columns ? *this : *this + Text(std::string(columns - width_, ' '));
}

Text Text::right_aligned(size_t columns) const {
  return width_ >= columns ? *this : Text(std::string(columns - width_, ' ')) + *this;
}

Text Text::cut(size_t columns, const Style& style) const {
  if (width_ <= columns) return *this;
  // The ellipsis belongs to the part that crosses the edge, so one column (two in ASCII) must be left for it.
  const size_t ellipsis = std::min<size_t>(columns, style.ascii ? 2 : 1);
  Text output;
  for (const Part& part : parts_) {
    if (output.width_ + part.width + ellipsis <= columns) {
      output.parts_.push_back(part);
      output.width_ += part.width;
      continue;
    }
    const size_t left = columns - output.width_;
    // One column more than fits makes fit() put its ellipsis, also where the part alone would fit.
    const std::string longer = part.plain + std::string(left + 1, '.');
    output += Text(fit(longer, left, style), part.code);
    break;
  }
  return output;
}

Text fill_in(std::string_view sentence, std::initializer_list<std::pair<std::string_view, Text>> values) {
  Text output;
  while (!sentence.empty()) {
    const size_t open = std::min(sentence.find('{'), sentence.size());
    output += Text(sentence.substr(0, open));
    sentence.remove_prefix(open);
    if (sentence.empty()) break;
    const size_t close = std::min(sentence.find('}'), sentence.size() - 1);
    const std::string_view name = sentence.substr(1, close - 1);
    const auto* found =
        std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.first == name; });
    output += found == values.end() ? Text(sentence.substr(0, close + 1)) : found->second;
    sentence.remove_prefix(close + 1);
  }
  return output;
}

Text joined(const std::vector<Text>& parts, const Text& separator) {
  Text output;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) output += separator;
    output += parts[i];
  }
  return output;
}

}  // namespace clearhead::views
